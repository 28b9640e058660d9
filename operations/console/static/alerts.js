/** The alerts, by their causes and one by one. */

import { h } from "../../../engine/pages/static/common/dom.js";
import { badge, LOOK } from "../../../engine/pages/static/common/marks.js";
import { rich, text } from "../../../engine/pages/static/common/words.js";
import { take } from "./act.js";
import { takers } from "./causes.js";
import { live } from "./live.js";
import { at, cell, folded, head, joined, listOf, nothing, numbered, outside, since } from "./parts.js";
import { ask } from "./session.js";
import { alertName, runbook, waiting } from "./words.js";

const EVERY_SECONDS = 10;
const LISTED = 50;
const ORDER = /^orders\/(b\d\d-\w+)$/;
/** The list that has the orders of a condition. */
const LISTS = { "orders-waiting": "Pending", "orders-overdue": "Processing", "orders-held": "Held" };

/** @param {import("./main.js").Place} place @returns {import("./main.js").Open} */
export function alertsPage(place) {
  async function load(signal) {
    const [{ causes, continuation: older }, { alerts }] = await Promise.all([
      ask("/api/operator/alerts/causes", { signal }),
      ask(`/api/operator/alerts?limit=${LISTED}`, { signal }),
    ]);
    return { causes, alerts, older };
  }

  const draw = ({ causes, alerts, older }) => [
    h("h1", null, text("console.alerts.title")),
    causes.length === 0 && nothing(text("console.alerts.none"), text("console.alerts.none-hint")),
    causes.length > 0 &&
      h(
        "section",
        { "aria-labelledby": "causes" },
        h("h2", { id: "causes" }, text("console.alerts.by-cause")),
        h(
          "ul",
          { class: "cards" },
          causes.map((group) => cause({ ...group, older }, place)),
        ),
        older && h("p", { class: "muted" }, text("console.alerts.older", { count: countOf(causes) })),
      ),
    alerts.length > 0 &&
      h(
        "section",
        { "aria-labelledby": "newest" },
        h("h2", { id: "newest" }, text("console.alerts.newest")),
        table(alerts),
      ),
  ];

  return live(place, {
    title: text("console.alerts.title"),
    shape: "cards",
    heading: ({ causes }) => `${numbered({ count: openOf(causes) })}${text("console.alerts.title")}`,
    load,
    draw,
    every: () => EVERY_SECONDS,
  });
}

const countOf = (causes) => causes.reduce((sum, group) => sum + group.count, 0);

const openOf = (causes) => causes.reduce((sum, group) => sum + group.open, 0);

const cause = (group, place) =>
  h(
    "li",
    { class: "card", key: `${group.type} ${group.step} ${group.cause || group.reason}` },
    h(
      "p",
      { class: group.open ? "big" : "big muted" },
      text("console.parts.alerts", { count: group.open || group.count }),
    ),
    h(
      "div",
      null,
      h("h3", { class: !group.open && "muted" }, folded(group.reason || text("console.parts.no-reason"))),
      h(
        "p",
        { class: "muted" },
        joined(
          ", ",
          alertName(group.type),
          group.step && text("console.alerts.step", { step: group.step }),
          rich("console.alerts.last", { ago: since(group.last) }),
          group.open > 0 &&
            group.open < group.count &&
            text("console.alerts.more-closed", { count: group.count - group.open }),
        ),
      ),
      takers(group.taken),
    ),
    h(
      "p",
      { class: "buttons" },
      outside(runbook(group.type), text("console.parts.what-to-do")),
      group.isEnd &&
        group.open > 0 &&
        h(
          "a",
          { class: "button", href: listOf({ state: waiting(), step: group.step, cause: group.cause }) },
          text("console.parts.show-orders"),
        ),
      group.open ? taken(group, place) : h("span", { class: "muted" }, text("console.alerts.closed")),
    ),
  );

const taken = (group, place) =>
  group.unacknowledged.length
    ? [
        h("span", { class: "muted" }, text("console.alerts.not-taken", { count: group.unacknowledged.length })),
        h("button", { onClick: () => take(group, place) }, text("console.parts.take")),
      ]
    : !group.taken?.length && badge(LOOK.well, text("console.causes.taken"));

const table = (alerts) =>
  h("table", { class: "rows" }, head(["at", "what", "about", "reason", "taken-by"]), h("tbody", null, alerts.map(row)));

const look = (alert) => (alert.actionRequired === false ? LOOK.undone : LOOK.wrong);

/** What an alert is about: an order, a list of orders with their number, or a part of the system. */
export function about(alert) {
  const order = ORDER.exec(alert.subject)?.[1];
  if (order) return h("a", { href: `#/orders/${order}`, "data-row": true }, h("code", null, order));
  const state = LISTS[alert.subject.split("/")[0]];
  if (!state) return alert.subject;
  return h(
    "a",
    { href: listOf({ state }), "data-row": true },
    joined(", ", text("console.parts.orders", { count: alert.count }), alert.subject),
  );
}

function row(alert) {
  const name = alertName(alert.type);
  return h(
    "tr",
    { key: alert.key, class: alert.closed && "grey" },
    cell("at", null, at(alert.at)),
    cell("what", null, alert.closed ? text("console.alerts.closed-alert", { alert: name }) : badge(look(alert), name)),
    cell("about", null, about(alert)),
    cell("reason", null, folded(String(alert.reason ?? ""))),
    cell(
      "taken-by",
      { class: "muted" },
      alert.acknowledged ? `${alert.acknowledged.by}: ${alert.acknowledged.note}` : text("console.alerts.nobody"),
    ),
  );
}
