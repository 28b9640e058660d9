/** The alerts, by their causes and one by one. */

import { h } from "../common/dom.js";
import { badge, LOOK } from "../common/marks.js";
import { take } from "./act.js";
import { live } from "./live.js";
import { at, many, nothing, since, text, head } from "./parts.js";
import { ask } from "./session.js";

const EVERY_SECONDS = 10;
const LISTED = 50;
const ORDER = /^orders\/(b\d\d-\w+)$/;

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
          causes.map((each) => cause(each, place)),
        ),
      ),
    alerts.length > 0 &&
      h("section", { "aria-labelledby": "newest" }, h("h2", { id: "newest" }, "The newest"), table(alerts)),
  ];

  return live(place, { title: "Alerts", load, draw, every: () => EVERY_SECONDS });
}

const kind = (type) =>
  type
    .split(".")
    .pop()
    .replace(/(?<=[a-z])(?=[A-Z])/g, " ");

const cause = (each, place) =>
  h(
    "li",
    { class: "card", key: `${each.type} ${each.step} ${each.reason}` },
    h("p", { class: each.open ? "big" : "big muted" }, many(each.open || each.count, "alert")),
    h(
      "div",
      null,
      h("h3", { class: !each.open && "muted" }, text(each.reason || "No reason is known")),
      h(
        "p",
        { class: "muted" },
        kind(each.type),
        each.step && `, step ${each.step}`,
        ", last ",
        since(each.last),
        each.open > 0 && each.open < each.count && `, ${each.count - each.open} more closed`,
      ),
    ),
    h("p", { class: "buttons" }, each.open ? taken(each, place) : h("span", { class: "muted" }, "closed")),
  );

const taken = (each, place) =>
  each.unacknowledged.length
    ? [
        h("span", { class: "muted" }, `${each.unacknowledged.length} not taken`),
        h("button", { onClick: () => take(each, place) }, "I take it"),
      ]
    : badge(LOOK.well, "taken");

const table = (alerts) =>
  h("table", { class: "rows" }, head(["At", "What", "About", "Reason", "Taken by"]), h("tbody", null, alerts.map(row)));

const look = (alert) => (alert.actionRequired === false ? LOOK.undone : LOOK.wrong);

function row(alert) {
  const order = ORDER.exec(alert.subject)?.[1];
  return h(
    "tr",
    { key: alert.key, class: alert.closed && "grey" },
    h("td", { "data-name": "At" }, at(alert.at)),
    h(
      "td",
      { "data-name": "What" },
      alert.closed ? `${kind(alert.type)}, closed` : badge(look(alert), kind(alert.type)),
    ),
    h(
      "td",
      { "data-name": "About" },
      order ? h("a", { href: `#/orders/${order}`, "data-row": true }, h("code", null, order)) : alert.subject,
    ),
    h("td", { "data-name": "Reason" }, text(String(alert.reason ?? ""))),
    h(
      "td",
      { "data-name": "Taken by", class: "muted" },
      alert.acknowledged ? `${alert.acknowledged.by}: ${alert.acknowledged.note}` : "nobody",
    ),
  );
}
