/** The same in words: for who does not see the picture, and for who wants numbers. */

import { h } from "../../../../engine/pages/static/common/dom.js";
import { LOOK } from "../../../../engine/pages/static/common/marks.js";
import { clock, duration, now } from "../../../../engine/pages/static/common/time.js";
import { text } from "../../../../engine/pages/static/common/words.js";
import { modeName } from "../banner.js";
import { atLeast, cell, head, joined } from "../parts.js";
import { AREAS } from "./model.js";

const PLACES = {
  scheduler: text("console.picture.wait-for-scheduler"),
  later: text("console.picture.wait-outside"),
  operator: text("console.picture.operator"),
};

/** @type {[string, import("../../../../engine/pages/static/common/marks.js").Look, string?][]} */
const DOTS = [
  [text("console.picture.dot-waits"), LOOK.plain],
  [text("console.picture.dot-runs"), LOOK.runs],
  [text("console.picture.dot-again"), LOOK.retried],
  [text("console.picture.dot-undone"), LOOK.undone],
  [text("console.picture.dot-needs-person"), LOOK.wrong, "square"],
  [text("console.picture.dot-done"), LOOK.well],
  [text("console.picture.dot-lost"), LOOK.plain, "lost"],
];

/** What the dots say. @param {import("./model.js").Model} model */
export const legend = ({ dots }) =>
  dots &&
  h(
    "p",
    { class: "legend small", key: "legend" },
    h("span", null, text("console.picture.an-order")),
    DOTS.map(([word, look, shape = ""]) => h("span", { class: "dots" }, h("i", { class: `${look} ${shape}` }), word)),
  );

/** @param {import("./model.js").Model} model */
export function inWords(model) {
  const { live, hosts } = model.answer;
  return h(
    "section",
    { "aria-labelledby": "numbers", key: "numbers" },
    h("h2", { id: "numbers" }, text("console.picture.in-numbers")),
    h(
      "table",
      { class: "rows" },
      head(["part", "orders", "state"]),
      h(
        "tbody",
        null,
        rows(model).map(([part, orders, state]) => row(part, orders, state)),
      ),
    ),
    h(
      "p",
      { class: "small muted" },
      text(hosts ? "console.picture.grey-host" : "console.picture.grey-instance"),
      !live.orders && [" ", text("console.picture.bars")],
    ),
  );
}

const row = (part, orders, state) =>
  h(
    "tr",
    { key: part },
    cell("part", null, h("strong", null, part)),
    cell("orders", null, orders),
    cell("state", null, state),
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
    [
      text("console.picture.queue"),
      live.submissions ?? "",
      live.submissions === null ? text("console.picture.queue-away") : "",
    ],
    .../** @type {[string, any, any][]} */ (
      Object.entries(PLACES).map(([key, name]) => [name, count(key), steps(({ stands }) => AREAS[stands] === key)])
    ),
    .../** @type {[string, any, any][]} */ (
      Object.entries(breakers).map(([agent, breaker]) => [
        text("console.picture.agent", { agent }),
        text("console.picture.asked", { requests: count(`requests ${agent}`), inHand: count(`agent ${agent}`) }),
        joined(
          "; ",
          steps((group) => group.agent === agent) || text("console.picture.nothing-asked"),
          stateOf(breaker),
          faults[agent] && text("console.picture.service-broken", { mode: modeName(faults[agent].mode) }),
        ),
      ])
    ),
    [text("console.picture.ended"), over, ""],
    [
      text("console.picture.supervisor"),
      "",
      sweep
        ? text("console.picture.swept", { time: clock(sweep.at), instance: sweep.instance, count: sweep.recovered })
        : text("console.picture.not-swept"),
    ],
    .../** @type {[string, any, any][]} */ (
      hosts.map((host) => [host.name, "", joined("; ", host.says, lossOf(host))])
    ),
  ];
}

/** At which steps orders are, and how many. @param {{step: string | null, count: number}[]} groups @returns {string} */
export function bySteps(groups) {
  const counts = new Map();
  for (const { step, count } of groups) {
    const name = step ?? text("console.picture.end");
    counts.set(name, (counts.get(name) ?? 0) + count);
  }
  return [...counts].map(([step, count]) => `${step} ${count}`).join(", ");
}

const stateOf = ({ state, until }) =>
  state === "open"
    ? text("console.picture.breaker-open-for", { time: duration((Date.parse(until) - now()) / 1000) })
    : text(state === "tries" ? "console.picture.breaker-probe" : "console.picture.breaker-closed");

const lossOf = ({ loss }) =>
  loss !== null && loss.found > 0 && text("console.picture.found", { found: loss.found, seconds: loss.after ?? "" });
