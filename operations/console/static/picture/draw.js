/** Draws a model: parts, what goes between them, dots and numbers. Buttons stand on the parts that they change. */

import { h } from "../../../../engine/pages/static/common/dom.js";
import { LOOK } from "../../../../engine/pages/static/common/marks.js";
import { text } from "../../../../engine/pages/static/common/words.js";
import { modeName } from "../banner.js";
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
      "aria-label": text("console.picture.title"),
    },
    h(
      "g",
      { "aria-hidden": "true", key: "drawn" },
      h("defs", null, arrow),
      wires(model),
      queue(model),
      part("scheduler", places.scheduler, text("console.picture.scheduler"), text("console.picture.scheduler-does")),
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
    part("queue", box, text("console.picture.queue"), wide && text("console.picture.queue-has"), [
      h(
        "g",
        { class: "number" },
        h(
          "text",
          { x: box.width - 10, y: 21, "text-anchor": "end" },
          count === null ? text("console.picture.away") : count > 0 && count,
        ),
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
      text(places.wide ? "console.picture.requests" : "console.picture.requests-short"),
      places.wide && text("console.picture.queues", { requests: `${agent}-requests`, responses: "-responses" }),
    ),
    part(
      `agent ${agent}`,
      box,
      places.wide ? text("console.picture.agent", { agent }) : agent,
      null,
      breakerSwitch(places, box, state),
    ),
    h(
      "g",
      { key: `service ${agent}`, class: fault ? "broken" : "" },
      part(
        `service ${agent}`,
        service,
        places.wide ? text("console.picture.service", { service: agent }) : text("console.picture.service-short"),
        null,
        [h("text", { class: "mode", x: 10, y: 42 }, serviceState(fault, services))],
      ),
    ),
  ];
}

/** Whether a service works, where it can be broken. */
function serviceState(fault, services) {
  if (fault) return text("console.picture.broken", { mode: modeName(fault.mode) });
  return services ? text("console.faults.works") : text("console.picture.not-ours");
}

const COMPARTMENTS = {
  later: text("console.picture.later"),
  operator: text("console.picture.operator"),
  over: text("console.picture.over"),
};
const SHORT = {
  later: text("console.picture.later-short"),
  operator: text("console.picture.operator-short"),
  over: text("console.picture.over"),
};

function store({ places: { store: box, kept, wide } }) {
  return [
    part("store", box, text("console.picture.store"), wide && text("console.picture.store-does")),
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
    text("console.picture.supervisor"),
    sweep && h("tspan", null, text("console.picture.swept-on", { host: leader?.name ?? sweep.instance })),
    h("text", { class: "says", x: 10, y: 44 }, text("console.picture.supervisor-does")),
  );
}

function hostPart(host, { hosts, wide }) {
  const box = hosts[host.name];
  const { says, brief, loss } = host;
  const lines = [wide ? says : brief, loss?.found > 0 && foundOf(loss, wide)].filter(Boolean);
  return h(
    "g",
    { key: `host ${host.name}`, class: host.gone ? "gone" : "" },
    part(`host ${host.name}`, box, host.name, null, [
      lines.map((line, at) => h("text", { class: "says", x: 10, y: 40 + 16 * at }, line)),
    ]),
  );
}

/** What supervisors found of what a host left. @param {import("./hosts.js").Loss} loss @param {boolean} wide */
const foundOf = ({ found, after }, wide) =>
  text(wide ? "console.picture.found" : "console.picture.found-short", { found, seconds: after ?? "" });

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
