/** Orders as rows of a table: of those that wait for a person it says why, of those under way what they wait for. */

import { h } from "../../../engine/pages/static/common/dom.js";
import { badge } from "../../../engine/pages/static/common/marks.js";
import { countdown, now } from "../../../engine/pages/static/common/time.js";
import { text } from "../../../engine/pages/static/common/words.js";
import { csv } from "./csv.js";
import { at, cell, head, localized, since } from "./parts.js";
import { isOver, orderLook, waitsForOperator } from "./words.js";

/**
 * @typedef {object} Listed an order as a list shows it
 * @property {string} orderId
 * @property {string} situation
 * @property {string[]} [failedSteps]
 * @property {string | null} [cause]
 * @property {string | null} [reason]
 * @property {string | null} [updatedAt]
 * @property {string | null} [placedAt]
 * @property {string | null} [step]
 * @property {number | null} [attempt]
 * @property {number | null} [threshold]
 * @property {string | null} [lastAnswer]
 * @property {string | null} [completeBy]
 * @property {string | null} [notBefore]
 * @property {string | null} [dueBy] by when it has to be over
 */

/**
 * @typedef {object} Column
 * @property {import("./parts.js").Column} name
 * @property {(order: Listed) => any} of
 * @property {boolean} [quiet]
 * @property {boolean} [optional] whether it is left out where no order has a value
 */

/** @type {Column} */
const STATE = { name: "state", of: (order) => order.situation && badge(orderLook(order).look, orderLook(order).word) };
/** @type {Column} */
const ORDER = {
  name: "order",
  of: ({ orderId }) => h("a", { href: `#/orders/${orderId}`, "data-row": true }, h("code", null, orderId)),
};
/** @type {Column} */
const SINCE = { name: "since", of: ({ updatedAt }) => updatedAt && since(updatedAt), quiet: true };
/** @type {Column} */
const PLACED = { name: "placed", of: ({ placedAt }) => placedAt && since(placedAt), quiet: true };
/** @type {Column} */
const REASON = { name: "reason", of: ({ reason }) => localized(reason ?? "") };

/** What is told of orders that have come to an end, for now or for good. @type {Column[]} */
export const ENDED = [
  STATE,
  ORDER,
  { name: "failed-step", of: ({ failedSteps = [] }) => failedSteps.join(", ") },
  REASON,
  SINCE,
  PLACED,
];

/** What is told of orders that are under way. @type {Column[]} */
export const UNDER_WAY = [
  STATE,
  ORDER,
  { name: "step", of: stepOf },
  { name: "last-answer", of: ({ lastAnswer, reason }) => localized(reason ?? lastAnswer ?? "") },
  { name: "next", of: next },
  { name: "due-by", of: ({ dueBy }) => dueBy && at(dueBy), optional: true },
  PLACED,
];

/** Which step an order is at, and which try that is. @param {Listed} order */
export function stepOf({ failedSteps = [], step, attempt, threshold }) {
  if (failedSteps.length) return failedSteps.join(", ");
  return step ? text("console.rows.attempt", { step, attempt: attempt ?? "", threshold: threshold ?? "" }) : "";
}

/** What happens next to an order, and when. @param {Listed} order */
export function next(order) {
  const { completeBy, notBefore } = order;
  if (isOver(order)) return "";
  if (waitsForOperator(order)) return text("console.rows.waits-for-you");
  if (completeBy) return h("span", { live: () => due(completeBy) });
  if (notBefore) return h("span", { live: () => text("console.rows.next-attempt", { time: countdown(notBefore) }) });
  return order.step ? text("console.rows.waits-for-scheduler") : "";
}

const due = (time) =>
  Date.parse(time) > now() ? text("console.rows.due", { time: countdown(time) }) : text("console.rows.overdue");

/** Who wants them in a spreadsheet: ids, states, times, causes and reasons. @param {Listed[]} orders */
export const asCsv = (orders) =>
  csv(
    [
      text("console.csv.order"),
      text("console.csv.state"),
      text("console.csv.step"),
      text("console.csv.cause"),
      text("console.csv.reason"),
      text("console.csv.last-answer"),
      text("console.csv.placed"),
      text("console.csv.changed"),
    ],
    orders.map((order) => [
      order.orderId,
      orderLook(order).word,
      stepOf(order),
      order.cause,
      order.reason,
      order.lastAnswer,
      order.placedAt,
      order.updatedAt,
    ]),
  );

/** @param {Listed[]} orders @param {Column[]} columns */
export function table(orders, columns) {
  const shown = columns.filter(({ of, optional }) => !optional || orders.some(of));
  return h(
    "table",
    { class: "rows" },
    head(shown.map(({ name }) => name)),
    h(
      "tbody",
      null,
      orders.map((order) =>
        h(
          "tr",
          { key: order.orderId },
          shown.map(({ name, of, quiet }) => cell(name, { class: quiet ? "muted" : null }, of(order))),
        ),
      ),
    ),
  );
}
