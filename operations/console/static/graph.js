/** The workflow as a picture: a step stands one column after the last of those that have to be done before it. */

import { h } from "../../../engine/pages/static/common/dom.js";
import { mark } from "../../../engine/pages/static/common/marks.js";
import { text } from "../../../engine/pages/static/common/words.js";
import { stepLook } from "./words.js";

const [WIDEST, NARROWEST, HEIGHT] = [180, 96, 56];
/** What stands beside the word, and how wide a letter of it is on average. */
const [BESIDE, LETTER] = [42, 6.2];
const GAP = { along: 44, beside: 20 };
const SWEEPS = 2;

/** @typedef {{name: string, after?: string[], state: string, failureCount: number, threshold: number}} Step */

/** The names by column, ordered so that lines cross seldom. @param {Step[]} steps @returns {string[][]} */
export function columns(steps) {
  const depth = new Map();
  for (const { name, after = [] } of steps)
    depth.set(name, 1 + Math.max(-1, ...after.map((earlier) => depth.get(earlier) ?? 0)));
  const found = Array.from({ length: 1 + Math.max(...depth.values()) }, () => /** @type {string[]} */ ([]));
  for (const { name } of steps) found[depth.get(name)].push(name);
  const after = new Map(steps.map((step) => [step.name, step.after ?? []]));
  const before = new Map(
    steps.map(({ name }) => [name, steps.filter((other) => other.after?.includes(name)).map((other) => other.name)]),
  );
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    for (let at = 1; at < found.length; at++) arrange(found[at], found[at - 1], after);
    for (let at = found.length - 2; at >= 0; at--) arrange(found[at], found[at + 1], before);
  }
  return found;
}

/** Sort a column by where, on average, its neighbours stand. */
function arrange(column, beside, neighbours) {
  const middle = (name) => {
    const places = neighbours
      .get(name)
      .map((neighbour) => beside.indexOf(neighbour))
      .filter((place) => place >= 0);
    return places.length ? places.reduce((sum, place) => sum + place, 0) / places.length : column.indexOf(name);
  };
  const places = new Map(column.map((name) => [name, middle(name)]));
  column.sort((one, other) => places.get(one) - places.get(other));
}

/**
 * @param {Step[]} steps @param {boolean} across whether it goes from left to right, or down
 * @param {number} [available] how wide it may be, if its boxes need not become too narrow for that
 */
export function graph(steps, across, available = Infinity) {
  const found = columns(steps);
  const widest = Math.max(...found.map((column) => column.length));
  const fits = Math.floor((available - 2 + GAP.beside) / widest) - GAP.beside;
  const size = { width: across ? WIDEST : Math.min(Math.max(fits, NARROWEST), WIDEST), height: HEIGHT };
  const [along, beside] = across ? [size.width, size.height] : [size.height, size.width];
  const [length, breadth] = [
    found.length * (along + GAP.along) - GAP.along,
    widest * (beside + GAP.beside) - GAP.beside,
  ];
  const place = new Map();
  found.forEach((column, at) => {
    const margin = (breadth - column.length * (beside + GAP.beside) + GAP.beside) / 2;
    column.forEach((name, row) => {
      const [main, cross] = [at * (along + GAP.along), margin + row * (beside + GAP.beside)];
      place.set(name, across ? { x: main, y: cross } : { x: cross, y: main });
    });
  });
  const [width, height] = across ? [length, breadth] : [breadth, length];
  return h(
    "svg",
    {
      class: "graph",
      width: width + 2,
      height: height + 2,
      viewBox: `-1 -1 ${width + 2} ${height + 2}`,
      role: "img",
      "aria-label": inWords(steps),
    },
    steps.flatMap((step) =>
      (step.after ?? [])
        .filter((earlier) => place.has(earlier))
        .map((earlier) => line(place.get(earlier), place.get(step.name), across, size, `${earlier}>${step.name}`)),
    ),
    steps.map((step) => box(step, place.get(step.name), size)),
  );
}

const inWords = (steps) =>
  steps
    .map((step) => {
      const [state, after] = [`${step.name}: ${stepLook(step).word}`, step.after ?? []];
      return after.length ? text("console.graph.after", { state, steps: after.join(", ") }) : state;
    })
    .join("; ");

function line(from, to, across, { width, height }, key) {
  const [x, y] = across ? [from.x + width, from.y + height / 2] : [from.x + width / 2, from.y + height];
  const [toX, toY] = across ? [to.x, to.y + height / 2] : [to.x + width / 2, to.y];
  const bend = across
    ? `C${(x + toX) / 2} ${y} ${(x + toX) / 2} ${toY}`
    : `C${x} ${(y + toY) / 2} ${toX} ${(y + toY) / 2}`;
  return h("path", { key, class: "edge", d: `M${x} ${y}${bend} ${toX} ${toY}` });
}

/** Whether a word fits into a box; where it does not, the mark and the table say it. */
const hasSpace = (word, width) => BESIDE + word.length * LETTER <= width;

function box(step, { x, y }, { width, height }) {
  const { look, word } = stepLook(step);
  return h(
    "g",
    { key: step.name, class: look, transform: `translate(${x} ${y})` },
    h("rect", { width, height, rx: 8 }),
    mark(look, { x: 12, y: 12 }),
    h("text", { class: "name", x: 36, y: 25 }, step.name),
    hasSpace(word, width) && h("text", { class: "word", x: 36, y: 43 }, word),
  );
}
