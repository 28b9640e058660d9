/** Draws a model: parts, what goes between them, dots and numbers. Buttons stand on the parts that they change. */

import { h } from "../../../../engine/pages/static/common/dom.js";
import { LOOK } from "../../../../engine/pages/static/common/marks.js";
import { atLeast } from "../parts.js";
import { buttons } from "./buttons.js";
import { arrow, breakerSwitch, wires } from "./wires.js";
import { DOT, pointIn } from "./model.js";

/** @typedef {import("./model.js").Model} Model */
/** @typedef {import("./places.js").Box} Box */

const MOVES = { duration: 700, easing: "ease-in-out" };
const BAR = 8;
/** So many messages are drawn, since nobody knows which orders they are. */
const MOST_LETTERS = 60;

/** @param {Model} model @param {import("./buttons.js").Hammers} hammers */
export function draw(model, hammers) {
  const { places } = model;
  return h(
    "svg",
    {
      class: "pattern",
      viewBox: `-1 -1 ${places.width + 2} ${places.height + 2}`,
      role: "group",
      "aria-label": "The pattern at work",
    },
    h(
      "g",
      { "aria-hidden": "true", key: "drawn" },
      h("defs", null, arrow),
      wires(model),
      queue(model),
      part("scheduler", places.scheduler, "Scheduler", "claims what may begin"),
      Object.keys(places.lanes).map((agent) => lane(model, agent)),
      store(model),
      supervisor(model),
      model.hosts.map((host) => hostPart(host, places)),
      model.areas.map((area) => numberOf(area, model)),
      model.dots &&
        h(
          "g",
          { key: "dots" },
          model.dots.map((dot) => dotOf(dot, hammers)),
        ),
    ),
    h("g", { key: "buttons" }, buttons(model, hammers)),
  );
}

/** @param {string} key @param {Box} box @param {string} title @param {any} note @param {...any} more */
function part(key, { x, y, width, height }, title, note, ...more) {
  const [kind] = key.split(" ");
  return h(
    "g",
    { key, class: `part ${kind}`, transform: `translate(${x} ${y})` },
    h("rect", { width, height, rx: 10 }),
    h("text", { class: "title", x: 10, y: 21 }, title),
    note && h("text", { class: "says", x: 10, y: height - 8 }, note),
    more,
  );
}

function queue({ places: { queue: box, wide }, dots, answer }) {
  const count = answer.live.submissions;
  const letters = Array.from({ length: dots ? Math.min(count ?? 0, MOST_LETTERS) : 0 }, (_, at) => pointIn(box, at));
  return [
    part("queue", box, "Submission queue", wide && "not recorded yet", [
      h(
        "g",
        { class: "number" },
        h("text", { x: box.width - 10, y: 21, "text-anchor": "end" }, count === null ? "away" : count > 0 && count),
      ),
    ]),
    letters.map(({ x, y }, at) =>
      h("rect", { key: `letter ${at}`, class: "letter", x, y, width: DOT, height: DOT - 2, rx: 1 }),
    ),
  ];
}

function lane({ places, breakers, faults, answer: { services } }, agent) {
  const { requests, agent: box, service } = places.lanes[agent];
  const { state } = breakers[agent];
  const fault = faults[agent];
  return [
    part(
      `requests ${agent}`,
      requests,
      places.wide ? "Requests" : "Asked",
      places.wide && `${agent}-requests, -responses`,
    ),
    part(`agent ${agent}`, box, places.wide ? `Agent ${agent}` : agent, null, breakerSwitch(places, box, state)),
    h(
      "g",
      { key: `service ${agent}`, class: fault ? "broken" : "" },
      part(`service ${agent}`, service, places.wide ? `Service ${agent}` : "Service", null, [
        h("text", { class: "mode", x: 10, y: 42 }, fault ? `broken: ${fault.mode}` : services ? "works" : "not ours"),
      ]),
    ),
  ];
}

const COMPARTMENTS = { later: "Wait for a time or an answer", operator: "Need a person", over: "Ended" };
const SHORT = { later: "Wait", operator: "Need you", over: "Ended" };

function store({ places: { store: box, kept, wide } }) {
  return [
    part("store", box, "State store", wide && "each change is one transaction"),
    Object.entries(kept).map(([key, compartment]) =>
      part(`kept ${key}`, compartment, (wide ? COMPARTMENTS : SHORT)[key], ""),
    ),
  ];
}

function supervisor({ places: { supervisor: box }, hosts, answer: { live } }) {
  const sweep = live.lastSweep;
  const leader = hosts.find(({ leads }) => leads);
  return part(
    "supervisor",
    box,
    "Supervisor",
    sweep && h("tspan", null, `swept last on ${leader?.name ?? sweep.instance}`),
    h("text", { class: "says", x: 10, y: 44 }, "finds what timed out, and gives it back"),
  );
}

function hostPart(host, { hosts, wide }) {
  const box = hosts[host.name];
  const { says, loss } = host;
  const found = loss?.found > 0 && `${wide ? "the supervisor found" : "found"} ${loss.found}, ${loss.after} s after`;
  const lines = [wide ? says : says.replace(/^.*; /, ""), found].filter(Boolean);
  return h(
    "g",
    { key: `host ${host.name}`, class: host.gone ? "gone" : "" },
    part(`host ${host.name}`, box, host.name, null, [
      lines.map((line, at) => h("text", { class: "says", x: 10, y: 40 + 16 * at }, line)),
    ]),
  );
}

/** How many are in an area; as a bar, where there are too many for dots. */
function numberOf({ key, box, count, more, share }, { dots, over, answer }) {
  const number = key === "over" ? over : count;
  const { x, y, width, height } = box;
  return h(
    "g",
    { key: `number ${key}`, class: "number" },
    h(
      "text",
      { x: x + width - 10, y: y + 21, "text-anchor": "end" },
      number > 0 && atLeast({ count: number, atLeast: more && key !== "over" }),
    ),
    !dots &&
      !answer.live.orders &&
      count > 0 &&
      h("rect", {
        class: "bar",
        x: x + 10,
        y: y + height / 2,
        width: Math.max(share * (width - 20), BAR / 2),
        height: BAR,
        rx: 3,
      }),
  );
}

function dotOf({ key, orderId, x, y, look, lost, says, from }, hammers) {
  const arrives = (node) =>
    (from.x !== x || from.y !== y) &&
    node.animate(
      [
        { x: `${from.x}px`, y: `${from.y}px` },
        { x: `${x}px`, y: `${y}px` },
      ],
      MOVES,
    );
  return h(
    "rect",
    {
      key,
      class: `dot ${look} ${look === LOOK.wrong ? "square" : ""} ${lost ? "lost" : ""}`,
      x,
      y,
      width: DOT,
      height: DOT,
      made: arrives,
      onClick: () => hammers.open(orderId),
    },
    h("title", null, says),
  );
}
