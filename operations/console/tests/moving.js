/**
 * Makes one moving picture of what the live page was told: `node moving.js RECORDED PICTURE`.
 *
 * It is drawn as the page draws it. A dot moves by a rule of its own; of every other part each look that it had is in
 * the picture, and shown at its time. Nothing in it runs a script, and it is still for who wants no motion.
 */

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { LOOK } from "../../../engine/pages/static/common/marks.js";
import { draw } from "../static/picture/draw.js";
import { modelOf } from "../static/picture/model.js";
import { know } from "../static/words.js";

/** @typedef {{seconds: number, caption: string, answer: any}} Moment */
/** @typedef {{from: number, to: number}[]} Times shares of the whole */

const WIDTH = 1144;
const HEAD = 76;
/** So many characters of a caption are on a line. */
const LINE = 98;
const MARGIN = 16;
/** For how long the end is shown, in the seconds of the record. */
const LAST = 5;
const STYLES = ["../../../engine/pages/static/common/base.css", "../static/picture/picture.css"];

/** @param {{vocabulary: any, moments: Moment[], speed: number}} recorded @returns {string} */
export function moving({ vocabulary, moments, speed }) {
  know(vocabulary);
  const begun = moments[0].seconds;
  const seconds = moments[moments.length - 1].seconds - begun + LAST;
  /** @type {any} */
  let model = null;
  const frames = moments.map((moment, at) => {
    const now = Date.parse(moment.answer.live.at);
    model = modelOf(moment.answer, model, { width: WIDTH, still: false, now });
    const [drawn] = draw(model, { open: () => {} }).children;
    const end = moments[at + 1]?.seconds ?? begun + seconds;
    return {
      times: { from: (moment.seconds - begun) / seconds, to: (end - begun) / seconds },
      pieces: pieces(drawn.children),
      dots: model.dots ?? [],
      caption: moment.caption,
    };
  });
  const height = Math.max(...frames.map(() => model.places.height));
  return picture(frames, { width: WIDTH, height, seconds: seconds / speed });
}

function picture(frames, { width, height, seconds }) {
  const rules = /** @type {string[]} */ ([]);
  const middle = frames[Math.floor(frames.length / 2)];
  const shown = variants(frames, rules, middle);
  const dots = dotsOf(frames, rules, middle);
  const [wide, high] = [width + 2 * MARGIN, height + HEAD + 2 * MARGIN];
  const calm = "@media (prefers-reduced-motion: reduce) { .at, .dot { animation: none; } }";
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${wide} ${high}" width="${wide}" height="${high}" role="img">`,
    "<title>Orders go through scheduler, agents and services; what fails is found and tried again</title>",
    `<style>${style()}`,
    `svg { font-family: system-ui, sans-serif; --all: ${seconds.toFixed(1)}s; }`,
    ".at { visibility: hidden; animation: var(--all) step-end infinite; }",
    ".at.still { visibility: visible; }",
    ".dot { animation: var(--all) linear infinite; transition: none; }",
    ".caption { font-size: 19px; font-weight: 600; }",
    `${rules.join("\n")}\n${calm}</style>`,
    `<rect width="${wide}" height="${high}" rx="14" fill="var(--ground)"/>`,
    `<g class="pattern" transform="translate(${MARGIN} ${MARGIN + HEAD})">`,
    ...shown,
    ...dots,
    "</g></svg>",
  ].join("\n");
}

/** The rules of the pages that the picture needs. */
function style() {
  const read = (name) => readFileSync(fileURLToPath(new URL(name, import.meta.url)), "utf8");
  const [base, own] = STYLES.map(read);
  const needed = base.match(/^:root \{[^}]*\}|^\.(?:pending|processing|processed|error|again|undo)\b[^}]*\}/gm) ?? [];
  return [
    ...needed,
    ...own.split("\n").filter((line) => line.startsWith(".pattern") && !line.includes("foreignObject")),
  ].join("\n");
}

/** Every part by its key. @returns {[string, any][]} */
function pieces(children) {
  if (Array.isArray(children)) return children.flatMap(pieces);
  if (!children?.tag || children.key === "dots") return [];
  return [[children.key ?? children.tag, children]];
}

/** Each look of each part, shown at its times. */
function variants(frames, rules, middle) {
  /** @type {Map<string, Times>} */
  const looks = new Map();
  const note = (text, { from, to }) => {
    const times = looks.get(text) ?? [];
    const last = times[times.length - 1];
    if (last?.to === from) last.to = to;
    else times.push({ from, to });
    looks.set(text, times);
  };
  const textsOf = ({ pieces, caption }) =>
    [...pieces.map(([, piece]) => written(piece)), captioned(caption)].filter(Boolean);
  for (const frame of frames) for (const text of new Set(textsOf(frame))) note(text, frame.times);
  const still = new Set(textsOf(middle));
  return [...looks].map(([text, times], at) => {
    if (times.length === 1 && times[0].from === 0 && times[0].to >= 1) return text;
    rules.push(`@keyframes v${at} { ${visible(times)} }`);
    return `<g class="at${still.has(text) ? " still" : ""}" style="animation-name:v${at}">${text}</g>`;
  });
}

const percent = (share) => `${(100 * share).toFixed(2)}%`;

/** @param {Times} times */
function visible(times) {
  const steps = times[0].from > 0 ? ["0% { visibility: hidden; }"] : [];
  for (const { from, to } of times) {
    steps.push(`${percent(from)} { visibility: visible; }`);
    if (to < 1) steps.push(`${percent(to)} { visibility: hidden; }`);
  }
  return steps.join(" ");
}

const captioned = (caption) =>
  lines(caption)
    .map((line, at) => `<text class="caption" x="0" y="${-HEAD + 22 + 26 * at}">${escaped(line)}</text>`)
    .join("");

/** The lines of a text, broken between words. @param {string} text */
function lines(text) {
  /** @type {string[]} */
  const found = [""];
  for (const word of text.split(" ")) {
    const last = found[found.length - 1];
    if (last.length + word.length < LINE) found[found.length - 1] = `${last} ${word}`.trim();
    else found.push(word);
  }
  return found;
}

/** @param {any} frames */
function dotsOf(frames, rules, middle) {
  const keys = new Set(frames.flatMap(({ dots }) => dots.map(({ key }) => key)));
  return [...keys].map((key, at) => {
    const seen = frames.map(({ times, dots }) => ({ ...times, dot: dots.find((candidate) => candidate.key === key) }));
    rules.push(`@keyframes d${at} { ${steps(seen)} }`);
    const still = middle.dots.find((candidate) => candidate.key === key);
    const place = still ? `transform:translate(${point(still)})` : "opacity:0";
    const look = still?.look ?? "pending";
    return `<rect class="dot ${look}" width="10" height="10" style="animation-name:d${at};${place}"/>`;
  });
}

const point = ({ x, y }) => `${x.toFixed(0)}px,${y.toFixed(0)}px`;
/** The share of the time in which a dot moves. */
const MOVES = 0.012;

/** Where a dot is, moment after moment; it moves when its place changes, and rests between. */
function steps(seen) {
  const { dot: first } = seen.find(({ dot }) => dot);
  let last = { ...first, ...first.from };
  let shown = seen[0].dot ? looked(first) : looked(last, 0);
  const found = [`0% { ${shown} }`];
  for (const { from, dot } of seen.slice(1)) {
    const now = dot ? looked(dot) : looked(last, 0);
    if (now !== shown) found.push(`${percent(from)} { ${shown} }`, `${percent(from + MOVES)} { ${now} }`);
    [last, shown] = [dot ?? last, now];
  }
  return `${found.join(" ")} 100% { ${shown} }`;
}

const looked = (dot, opacity = dot.lost ? 0.35 : 1) =>
  `transform: translate(${point(dot)}); opacity: ${opacity}; color: var(--${dot.look}); rx: ${dot.look === LOOK.wrong ? 1.5 : 5}px;`;

const escaped = (text) => String(text).replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);

/** An element as text, without what only a page can do. */
function written(wanted) {
  if (Array.isArray(wanted)) return wanted.map(written).join("");
  if (!wanted && wanted !== 0) return "";
  if (!wanted.tag) return escaped(wanted);
  const props = Object.entries(wanted.props)
    .filter(([name, value]) => !/^(key|made|live|on[A-Z].*)$/.test(name) && value !== null && value !== false)
    .map(([name, value]) => ` ${name}="${escaped(value)}"`);
  return `<${wanted.tag}${props.join("")}>${written(wanted.children)}</${wanted.tag}>`;
}

const [, script, recorded, made] = process.argv;
if (script === fileURLToPath(import.meta.url)) writeFileSync(made, moving(JSON.parse(readFileSync(recorded, "utf8"))));
