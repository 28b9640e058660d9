/** Why orders wait for a person, as cards: by cause, and by service where that is the cause of several. */

import { h } from "../../../engine/pages/static/common/dom.js";
import { badge, LOOK } from "../../../engine/pages/static/common/marks.js";
import { clock } from "../../../engine/pages/static/common/time.js";
import { rich, text } from "../../../engine/pages/static/common/words.js";
import { take } from "./act.js";
import { joined, listOf, outside, since } from "./parts.js";
import { openCircuits } from "./system.js";
import { runbook, waiting } from "./words.js";

/** What the runbook calls a service that does not answer, and an order that has ended so. */
const [CIRCUIT, ENDED] = ["circuit-open", "OrderProcessing.OrderFailed"];

/**
 * @typedef {{step: string | null, agent?: string | null, cause: string | null, reason: string | null, count: number, first: string | null}} Cause
 * @typedef {{by: string, at: string, note?: string, count: number}} Taken
 * @typedef {{step: string, cause: string, unacknowledged: string[], taken?: Taken[]}} Alerted the alerts of a cause
 * @typedef {{key: string, title: string, agent?: string, until?: string, causes: Cause[], count: number, first: string | null, unacknowledged: string[], taken: Taken[], means: (alert: any) => boolean, older?: string | null}} Group
 */

/**
 * The groups in which causes are told. Those of a service whose circuit is open are one: it explains them all.
 * @param {any} overview @param {Alerted[]} alerts @param {string | null} [older] where the older alerts begin
 * @returns {Group[]}
 */
export function groupsOf(overview, alerts, older = null) {
  const open = new Map(openCircuits(overview));
  /** @type {Map<string, Cause[]>} */
  const groups = new Map();
  for (const cause of overview.waitingForOperator) {
    const { step, agent, cause: name, reason } = cause;
    const key = JSON.stringify(open.has(agent) ? [agent] : [step, agent, name ?? reason]);
    groups.set(key, [...(groups.get(key) ?? []), cause]);
  }
  const found = [...groups].map(([key, causes]) => ({ ...group(key, causes, open, alerts), older }));
  return found.sort((one, other) => other.count - one.count);
}

function group(key, causes, open, alerts) {
  const [{ agent, reason }] = causes;
  const until = open.get(agent);
  const means = (alert) => causes.some((cause) => isOf(alert, cause));
  const known = alerts.filter(means);
  return {
    key,
    title: until
      ? text("console.causes.circuit-open", { agent, until: clock(until) })
      : (reason ?? text("console.parts.no-reason")),
    agent: until ? agent : undefined,
    until,
    causes,
    count: causes.reduce((sum, cause) => sum + cause.count, 0),
    first: causes.map((cause) => cause.first).sort()[0],
    unacknowledged: known.flatMap((alert) => alert.unacknowledged),
    taken: known.flatMap((alert) => alert.taken ?? []),
    means,
  };
}

const isOf = (alerts, { step, cause }) => cause && alerts.cause === cause && alerts.step === (step ?? "");

/** The list of the orders of a cause. @param {Cause} cause */
const ordersOf = ({ step, agent, cause }) => listOf({ state: waiting(), step, agent, cause });

/** How many orders wait for reasons of which somebody has taken every alert. @param {Group[]} groups */
export const takenOf = (groups) => groups.filter(isTaken).reduce((sum, { count }) => sum + count, 0);

const isTaken = ({ unacknowledged, taken }) => taken.length > 0 && !unacknowledged.length;

/**
 * @param {Group} group @param {boolean} more whether there are orders that were not counted
 * @param {import("./main.js").Place} place @param {boolean} [isFirst] whether it is the one to begin with
 */
export function card(group, more, place, isFirst = false) {
  const { key, title, causes, count, first, unacknowledged, until } = group;
  const [{ step }] = causes;
  return h(
    "li",
    { class: "card", key },
    h("p", { class: "big" }, text(more ? "console.causes.at-least" : "console.parts.orders", { count })),
    h(
      "div",
      null,
      h("h3", null, title),
      h(
        "p",
        { class: "muted" },
        joined(
          ", ",
          !until && step && text("console.causes.step", { step }),
          first && rich("console.causes.first", { ago: since(first) }),
        ),
      ),
      until && h("ul", null, causes.map(one)),
      takers(group.taken),
    ),
    h(
      "p",
      { class: "buttons" },
      outside(runbook(until ? CIRCUIT : ENDED), text("console.parts.what-to-do")),
      unacknowledged.length > 0 && h("button", { onClick: () => take(group, place) }, text("console.parts.take")),
      !until &&
        h(
          "a",
          { class: `button ${isFirst ? "main" : ""}`, href: ordersOf(causes[0]) },
          text("console.parts.show-orders"),
        ),
    ),
  );
}

/** @param {Cause} cause */
const one = (cause) =>
  h(
    "li",
    { key: `${cause.step} ${cause.cause ?? cause.reason}` },
    rich("console.causes.orders-at", {
      orders: h("a", { href: ordersOf(cause) }, text("console.parts.orders", { count: cause.count })),
      step: String(cause.step),
      reason: cause.reason ?? text("console.causes.no-reason"),
    }),
  );

/** Who has taken it, and when. @param {Taken[]} taken */
export const takers = (taken = []) =>
  taken.length > 0 &&
  h(
    "p",
    { class: "takers" },
    taken.map(({ by, at, note }, place) => [
      place ? "; " : [badge(LOOK.well, text("console.causes.taken")), " "],
      rich("console.causes.taken-by", { operator: by, ago: since(at) }),
      note && `: ${note}`,
    ]),
  );
