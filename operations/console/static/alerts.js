/** The alerts, by their causes and one by one. */

import { h } from "../../../engine/pages/static/common/dom.js";
import { badge, LOOK } from "../../../engine/pages/static/common/marks.js";
import { take } from "./act.js";
import { takers } from "./causes.js";
import { live } from "./live.js";
import { at, listOf, many, nothing, numbered, outside, since, text, head } from "./parts.js";
import { ask } from "./session.js";
import { runbook, waiting } from "./words.js";

const EVERY_SECONDS = 10;
const LISTED = 50;
const ORDER = /^orders\/(b\d\d-\w+)$/;
/** The list that has the orders of a condition. */
const LISTS = { "orders-waiting": "Pending", "orders-overdue": "Processing", "orders-held": "Held" };

/** @param {import("./main.js").Place} place @returns {import("./main.js").Open} */
export function alertsPage(place) {
  async function load(signal) {
    const [{ causes }, { alerts }] = await Promise.all([
      ask("/api/operator/alerts/causes", { signal }),
      ask(`/api/operator/alerts?limit=${LISTED}`, { signal }),
    ]);
    return { causes, alerts };
  }

  const draw = ({ causes, alerts }) => [
    h("h1", null, "Alerts"),
    causes.length === 0 &&
      nothing("There is no alert", "What goes wrong for good is told here, and by e-mail where that is set up."),
    causes.length > 0 &&
      h(
        "section",
        { "aria-labelledby": "causes" },
        h("h2", { id: "causes" }, "By cause"),
        h(
          "ul",
          { class: "cards" },
          causes.map((group) => cause(group, place)),
        ),
      ),
    alerts.length > 0 &&
      h("section", { "aria-labelledby": "newest" }, h("h2", { id: "newest" }, "The newest"), table(alerts)),
  ];

  return live(place, {
    title: "Alerts",
    shape: "cards",
    heading: ({ causes }) => `${numbered({ count: openOf(causes) })}Alerts`,
    load,
    draw,
    every: () => EVERY_SECONDS,
  });
}

const openOf = (causes) => causes.reduce((sum, group) => sum + group.open, 0);

const kind = (type) =>
  type
    .split(".")
    .pop()
    .replace(/(?<=[a-z])(?=[A-Z])/g, " ");

const cause = (group, place) =>
  h(
    "li",
    { class: "card", key: `${group.type} ${group.step} ${group.cause || group.reason}` },
    h("p", { class: group.open ? "big" : "big muted" }, many(group.open || group.count, "alert")),
    h(
      "div",
      null,
      h("h3", { class: !group.open && "muted" }, text(group.reason || "No reason is known")),
      h(
        "p",
        { class: "muted" },
        kind(group.type),
        group.step && `, step ${group.step}`,
        ", last ",
        since(group.last),
        group.open > 0 && group.open < group.count && `, ${group.count - group.open} more closed`,
      ),
      takers(group.taken),
    ),
    h(
      "p",
      { class: "buttons" },
      outside(runbook(group.type), "What to do"),
      group.isEnd &&
        group.open > 0 &&
        h(
          "a",
          { class: "button", href: listOf({ state: waiting(), step: group.step, cause: group.cause }) },
          "Show orders",
        ),
      group.open ? taken(group, place) : h("span", { class: "muted" }, "closed"),
    ),
  );

const taken = (group, place) =>
  group.unacknowledged.length
    ? [
        h("span", { class: "muted" }, `${group.unacknowledged.length} not taken`),
        h("button", { onClick: () => take(group, place) }, "I take it"),
      ]
    : !group.taken?.length && badge(LOOK.well, "taken");

const table = (alerts) =>
  h("table", { class: "rows" }, head(["At", "What", "About", "Reason", "Taken by"]), h("tbody", null, alerts.map(row)));

const look = (alert) => (alert.actionRequired === false ? LOOK.undone : LOOK.wrong);

/** What an alert is about: an order, a list of orders with their number, or a part of the system. */
export function about(alert) {
  const order = ORDER.exec(alert.subject)?.[1];
  if (order) return h("a", { href: `#/orders/${order}`, "data-row": true }, h("code", null, order));
  const state = LISTS[alert.subject.split("/")[0]];
  if (!state) return alert.subject;
  return h("a", { href: listOf({ state }), "data-row": true }, many(alert.count, "order"), `, ${alert.subject}`);
}

function row(alert) {
  return h(
    "tr",
    { key: alert.key, class: alert.closed && "grey" },
    h("td", { "data-name": "At" }, at(alert.at)),
    h(
      "td",
      { "data-name": "What" },
      alert.closed ? `${kind(alert.type)}, closed` : badge(look(alert), kind(alert.type)),
    ),
    h("td", { "data-name": "About" }, about(alert)),
    h("td", { "data-name": "Reason" }, text(String(alert.reason ?? ""))),
    h(
      "td",
      { "data-name": "Taken by", class: "muted" },
      alert.acknowledged ? `${alert.acknowledged.by}: ${alert.acknowledged.note}` : "nobody",
    ),
  );
}
