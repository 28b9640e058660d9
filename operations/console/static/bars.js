/** When each attempt ran, as bars on one line of time for each step; a tick marks by when an answer has to be there. */

import { h } from "../../../engine/pages/static/common/dom.js";
import { LOOK } from "../../../engine/pages/static/common/marks.js";
import { clock, duration, now } from "../../../engine/pages/static/common/time.js";
import { text } from "../../../engine/pages/static/common/words.js";
import { attempts, gaps } from "./attempts.js";
import { isOver, mayComeAgain, waitsForOperator } from "./words.js";

const ROW = 24;
const NARROWEST = 0.6;
const SHORTEST_SHOWN = 1000;
/** How an attempt looks that has not ended. */
const RUNNING = { word: text("console.bars.running"), mark: LOOK.runs };

const inSeconds = (time) =>
  time < 60_000 ? text("page.time.seconds", { count: (time / 1000).toFixed(1) }) : duration(time / 1000);

/** @param {any} order */
export function bars(order) {
  const at = now();
  const all = attempts(order, at);
  if (!all.length) return h("p", { class: "muted" }, text("console.bars.none"));
  const goesOn = !isOver(order) && !waitsForOperator(order);
  const from = Date.parse(order.history[0].at);
  const ends = all.map((attempt) => Math.max(attempt.to, attempt.completeBy ?? 0));
  const to = Math.max(...ends, goesOn ? at : 0, from + 1);
  const share = (time) => (100 * (time - from)) / (to - from);
  const rows = order.steps.map((step) => rowOf(step, all, goesOn, at)).filter(({ own }) => own.length);
  return h(
    "figure",
    { class: "bars" },
    hatch(),
    rows.map((stepRow) => row(stepRow, share, goesOn ? at : null)),
    h(
      "figcaption",
      { class: "muted small" },
      h("span", null, clock(from)),
      h("span", null, text(goesOn ? "console.bars.all-so-far" : "console.bars.all", { time: inSeconds(to - from) })),
      h("span", null, clock(to)),
    ),
  );
}

/** What there is to draw of a step: its attempts, and when it waited for the next one. */
function rowOf(step, all, goesOn, at) {
  const own = all.filter((attempt) => attempt.step === step.name);
  return { name: step.name, own, waited: gaps(own, goesOn && mayComeAgain(step), at) };
}

const row = ({ name, own, waited }, share, at) =>
  h(
    "div",
    { key: name, class: "bar-row" },
    h("span", null, name),
    h(
      "svg",
      { width: "100%", height: ROW, role: "img", "aria-label": inWords(name, own, waited) },
      h("line", { class: "track", x1: "0", x2: "100%", y1: ROW / 2, y2: ROW / 2 }),
      waited.map((wait) => gap(wait, share)),
      own.map((attempt) => bar(attempt, share)),
      at && h("line", { class: "now", x1: `${share(at)}%`, x2: `${share(at)}%`, y1: -4, y2: ROW }),
    ),
  );

/** What was not tried is hatched: nobody was called, so nobody was slow. */
const hatch = () =>
  h(
    "svg",
    { key: "hatch", class: "for-readers", "aria-hidden": "true" },
    h(
      "pattern",
      { id: "hatched", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      h("line", { class: "hatch", x1: 1, x2: 1, y1: 0, y2: 6 }),
    ),
  );

/** The attempts of a step in words, with how long it waited before each. */
function inWords(name, own, waited) {
  const attempts = own.map((attempt) => [...before(attempt, waited), attemptText(attempt)].join("; "));
  const last = waited.find(({ from }) => from === own[own.length - 1].to);
  return `${name}: ${[...attempts, ...(last ? [waitOf(last)] : [])].join("; ")}`;
}

const before = ({ from }, waited) =>
  waited.filter(({ from: since, to }) => to === from && to - since >= SHORTEST_SHOWN).map(waitOf);
const waitOf = ({ from, to }) => text("console.bars.waited", { time: inSeconds(to - from) });
function attemptText({ attempt, undo, from, to, end, why }) {
  const values = { attempt, from: clock(from), end: (end ?? RUNNING).word, time: inSeconds(to - from) };
  const words = text(undo ? "console.bars.undo-attempt" : "console.bars.attempt", values);
  return why ? `${words}: ${why}` : words;
}

const gap = (wait, share) =>
  h(
    "line",
    {
      key: `gap ${wait.from}`,
      class: "gap",
      x1: `${share(wait.from)}%`,
      x2: `${share(wait.to)}%`,
      y1: ROW / 2,
      y2: ROW / 2,
    },
    h("title", null, waitOf(wait)),
  );

function bar(attempt, share) {
  const width = Math.max(share(attempt.to) - share(attempt.from), NARROWEST);
  return h(
    "g",
    { key: `${attempt.undo}${attempt.attempt}`, class: (attempt.end ?? RUNNING).mark },
    h(
      "rect",
      { x: `${Math.min(share(attempt.from), 100 - width)}%`, width: `${width}%`, y: 4, height: ROW - 8, rx: 2 },
      h("title", null, attemptText(attempt)),
    ),
    attempt.completeBy &&
      h(
        "line",
        { class: "due", x1: `${share(attempt.completeBy)}%`, x2: `${share(attempt.completeBy)}%`, y1: 0, y2: ROW },
        h("title", null, text("console.bars.complete-by", { time: clock(attempt.completeBy) })),
      ),
  );
}
