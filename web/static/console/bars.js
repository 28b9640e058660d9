/** When each attempt ran, as bars on one line of time for each step; a tick marks by when an answer has to be there. */

import { h } from "../common/dom.js";
import { LOOK } from "../common/marks.js";
import { clock, duration } from "../common/time.js";
import { attempts } from "./attempts.js";

const ROW = 24;
const NARROWEST = 0.6;
/** How an attempt looks that has not ended. */
const RUNNING = { word: "running", mark: LOOK.runs };

const inSeconds = (time) => (time < 60_000 ? `${(time / 1000).toFixed(1)} s` : duration(time / 1000));

/** @param {any} order */
export function bars(order) {
  const now = Date.now();
  const all = attempts(order, now);
  if (!all.length) return h("p", { class: "muted" }, "No step has begun yet.");
  const from = Date.parse(order.history[0].at);
  const to = Math.max(...all.map((each) => Math.max(each.to, each.completeBy ?? 0)), from + 1);
  const share = (time) => (100 * (time - from)) / (to - from);
  const names = order.steps.map(({ name }) => name).filter((name) => all.some(({ step }) => step === name));
  return h(
    "figure",
    { class: "bars" },
    names.map((name) =>
      h(
        "div",
        { key: name, class: "bar-row" },
        h("span", null, name),
        h(
          "svg",
          { width: "100%", height: ROW, role: "img", "aria-label": inWords(name, all) },
          h("line", { class: "track", x1: "0", x2: "100%", y1: ROW / 2, y2: ROW / 2 }),
          all.filter(({ step }) => step === name).map((each) => bar(each, share)),
        ),
      ),
    ),
    h(
      "figcaption",
      { class: "muted small" },
      h("span", null, clock(from)),
      h("span", null, `${inSeconds(to - from)} in all`),
      h("span", null, clock(to)),
    ),
  );
}

const inWords = (name, all) =>
  `${name}: ${all
    .filter(({ step }) => step === name)
    .map(said)
    .join("; ")}`;
const said = ({ attempt, undo, from, to, end }) =>
  `${undo ? "undo, " : ""}attempt ${attempt} from ${clock(from)}, ${(end ?? RUNNING).word} after ${inSeconds(to - from)}`;

function bar(each, share) {
  const width = Math.max(share(each.to) - share(each.from), NARROWEST);
  return h(
    "g",
    { key: `${each.undo}${each.attempt}`, class: (each.end ?? RUNNING).mark },
    h(
      "rect",
      { x: `${Math.min(share(each.from), 100 - width)}%`, width: `${width}%`, y: 4, height: ROW - 8, rx: 2 },
      h("title", null, said(each)),
    ),
    each.completeBy &&
      h(
        "line",
        { class: "due", x1: `${share(each.completeBy)}%`, x2: `${share(each.completeBy)}%`, y1: 0, y2: ROW },
        h("title", null, `complete by ${clock(each.completeBy)}`),
      ),
  );
}
