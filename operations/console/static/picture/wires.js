/** What goes between the parts: queues, calls, reads and writes, and the switch of a breaker. */

import { h } from "../../../../engine/pages/static/common/dom.js";
import { text } from "../../../../engine/pages/static/common/words.js";

/** @typedef {import("./places.js").Box} Box */
/** @typedef {import("./places.js").Places} Places */

const SWITCH = 15;

export const arrow = h(
  "marker",
  { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" },
  h("path", { d: "M0 0.5 7.5 4 0 7.5z" }),
);

/** @param {string} key @param {string} d @param {{both?: boolean, kind?: string}} [more] */
const wire = (key, d, { both, kind = "" } = {}) =>
  h("path", { key, class: `wire ${kind}`, d, "marker-end": "url(#tip)", "marker-start": both ? "url(#tip)" : null });

const right = ({ x, width }) => x + width;
const bottom = ({ y, height }) => y + height;
const center = ({ x, width }) => x + width / 2;

/** @param {import("./model.js").Model} model */
export function wires({ places, breakers }) {
  const { wide, queue, scheduler, lanes, store, supervisor } = places;
  return [
    wide
      ? wire("in", `M${right(queue)} ${queue.height / 2}H${scheduler.x - 3}`)
      : wire("in", `M${center(queue)} ${bottom(queue)}V${scheduler.y - 3}`),
    Object.entries(lanes).map(([agent, lane], at) => [
      wide ? requestWires(agent, lane, scheduler) : at === 0 && below(lane.requests, scheduler),
      wire(`to ${agent}`, `M${right(lane.requests)} ${lane.agent.y + 46}H${lane.agent.x - 3}`),
      wide && calls(agent, lane, breakers[agent].state),
    ]),
    wide
      ? [
          wire("state", `M${center(scheduler)} ${bottom(scheduler) + 3}V${store.y - 3}`, { both: true }),
          label("states", center(scheduler) + 10, bottom(scheduler) + 27, text("console.picture.claims")),
        ]
      : wire("state", `M${center(scheduler)} ${store.y - 22}V${store.y - 3}`, { both: true }),
    wire("sweep", `M${supervisor.x + 60} ${supervisor.y}V${bottom(store) + 3}`, { kind: "sweeps" }),
    wide && label("sweeps", supervisor.x + 70, supervisor.y - 18, text("console.picture.overdue")),
  ];
}

const label = (key, x, y, words) => h("text", { key: `label ${key}`, class: "label", x, y }, words);

/** The two queues of an agent. */
const requestWires = (agent, { requests }, scheduler) => [
  wire(`ask ${agent}`, `M${right(scheduler)} ${requests.y + 34}H${requests.x - 3}`),
  wire(`answer ${agent}`, `M${requests.x} ${requests.y + 66}H${right(scheduler) + 3}`, { kind: "answers" }),
];

const below = (box, scheduler) => [
  wire("ask", `M${center(scheduler) - 20} ${bottom(scheduler)}V${box.y - 3}`),
  wire("answer", `M${center(scheduler) + 20} ${box.y - 2}V${bottom(scheduler) + 3}`, { kind: "answers" }),
];

/** The wire from an agent to its service, with the breaker in its middle. */
function calls(agent, { agent: box, service }, state) {
  const [middle, y] = [(right(box) + service.x) / 2, box.y + box.height / 2];
  return [
    h("path", { key: `calls ${agent}`, class: "wire", d: `M${right(box)} ${y}H${middle - SWITCH}` }),
    wire(`called ${agent}`, `M${middle + SWITCH} ${y}H${service.x - 3}`),
    lever(`breaker ${agent}`, middle, y, state),
  ];
}

const lever = (key, x, y, state) =>
  h(
    "g",
    { key, class: `breaker ${state}`, transform: `translate(${x} ${y})` },
    h("circle", { cx: -SWITCH, cy: 0, r: 3.5 }),
    h("circle", { cx: SWITCH, cy: 0, r: 3.5 }),
    h("line", { class: "lever", x1: -SWITCH, x2: SWITCH, y1: 0, y2: 0 }),
  );

const WORDS = {
  closed: text("console.picture.breaker-closed"),
  open: text("console.picture.breaker-open"),
  tries: text("console.picture.breaker-probe-short"),
};
const SHORT = {
  closed: text("console.picture.breaker-closed-short"),
  open: text("console.picture.breaker-open-short"),
  tries: text("console.picture.breaker-probe-short"),
};

/** The state of a breaker in words, and where there is no wire the switch itself. @param {Places} places @param {Box} box @param {"closed" | "open" | "tries"} state */
export const breakerSwitch = ({ wide }, box, state) => [
  h("text", { key: "word", class: `says breaker ${state}`, x: 10, y: box.height - 8 }, (wide ? WORDS : SHORT)[state]),
  !wide && lever("switch", box.width - 26, box.height - 14, state),
];
