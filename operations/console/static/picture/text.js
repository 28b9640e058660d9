/** The same in words: for who does not see the picture, and for who wants numbers. */

import { h } from "../../../../engine/pages/static/common/dom.js";
import { LOOK } from "../../../../engine/pages/static/common/marks.js";
import { clock, duration, now } from "../../../../engine/pages/static/common/time.js";
import { atLeast, head, many } from "../parts.js";
import { AREAS } from "./model.js";

const PLACES = {
  scheduler: "Wait for a scheduler",
  later: "Wait for a time or an answer from outside",
  operator: "Need a person",
};

/** @type {[string, import("../../../../engine/pages/static/common/marks.js").Look, string?][]} */
const DOTS = [
  ["is waiting", LOOK.plain],
  ["is worked on", LOOK.runs],
  ["is tried again", LOOK.retried],
  ["is taken back", LOOK.undone],
  ["needs a person", LOOK.wrong, "square"],
  ["is done", LOOK.well],
  ["was in the hands of a host that ended", LOOK.plain, "lost"],
];

/** What the dots say. @param {import("./model.js").Model} model */
export const legend = ({ dots }) =>
  dots &&
  h(
    "p",
    { class: "legend small", key: "legend" },
    h("span", null, "An order"),
    DOTS.map(([word, look, shape = ""]) => h("span", { class: "dots" }, h("i", { class: `${look} ${shape}` }), word)),
  );

/** @param {import("./model.js").Model} model */
export function inWords(model) {
  const { live, hosts } = model.answer;
  return h(
    "section",
    { "aria-labelledby": "numbers", key: "numbers" },
    h("h2", { id: "numbers" }, "In numbers"),
    h(
      "table",
      { class: "rows" },
      head(["Part", "Orders", "State"]),
      h(
        "tbody",
        null,
        rows(model).map(([part, orders, state]) => row(part, orders, state)),
      ),
    ),
    h(
      "p",
      { class: "small muted" },
      hosts
        ? "The runner says which hosts run. A host is grey until its locks have run out and nothing of what it had is left."
        : "An instance is grey that has said nothing for 15 s: it may have nothing to do, or be gone.",
      live.orders ? "" : " There are more than 200 open orders: bars stand for dots.",
    ),
  );
}

const row = (part, orders, state) =>
  h(
    "tr",
    { key: part },
    h("td", { "data-name": "Part" }, h("strong", null, part)),
    h("td", { "data-name": "Orders" }, orders),
    h("td", { "data-name": "State" }, state),
  );

/** @param {import("./model.js").Model} model @returns {[string, any, any][]} */
function rows({ areas, breakers, faults, hosts, over, answer: { live } }) {
  const count = (key) => {
    const found = areas.find((area) => area.key === key);
    return found ? atLeast({ count: found.count, atLeast: found.more }) : "0";
  };
  const steps = (wanted) => bySteps(live.groups.filter(wanted));
  const sweep = live.lastSweep;
  return [
    ["Submission queue", live.submissions ?? "", live.submissions === null ? "the queue is away" : ""],
    .../** @type {[string, any, any][]} */ (
      Object.entries(PLACES).map(([key, name]) => [name, count(key), steps(({ stands }) => AREAS[stands] === key)])
    ),
    .../** @type {[string, any, any][]} */ (
      Object.entries(breakers).map(([agent, breaker]) => [
        `Agent ${agent}`,
        `${count(`requests ${agent}`)} asked, ${count(`agent ${agent}`)} in hand`,
        [
          steps((group) => group.agent === agent) || "nothing asked",
          `; ${stateOf(breaker)}`,
          faults[agent] && `; its service is broken: ${faults[agent].mode}`,
        ],
      ])
    ),
    ["Ended since this page was opened", over, ""],
    [
      "Supervisor",
      "",
      sweep
        ? `swept at ${clock(sweep.at)} on ${sweep.instance}, and recovered ${many(sweep.recovered, "order")}`
        : "has not swept yet",
    ],
    .../** @type {[string, any, any][]} */ (hosts.map((host) => [host.name, "", [host.says, lossOf(host)]])),
  ];
}

/** At which steps orders are, and how many. @param {{step: string | null, count: number}[]} groups @returns {string} */
export function bySteps(groups) {
  const counts = new Map();
  for (const { step, count } of groups) counts.set(step ?? "end", (counts.get(step ?? "end") ?? 0) + count);
  return [...counts].map(([step, count]) => `${step} ${count}`).join(", ");
}

const stateOf = ({ state, until }) =>
  ({
    closed: "breaker closed",
    open: `breaker open for ${duration((Date.parse(until) - now()) / 1000)}`,
    tries: "one call tries whether the service works",
  })[state];

const lossOf = ({ loss }) =>
  loss !== null && loss.found > 0 && `; the supervisor found ${loss.found}, ${loss.after} s after`;
