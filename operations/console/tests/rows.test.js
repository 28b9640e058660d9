/** What a list says of an order. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { ago } from "../../../engine/pages/static/common/time.js";
import { text } from "../../../engine/pages/static/common/words.js";
import { ENDED, next, stepOf, table, UNDER_WAY } from "../static/rows.js";
import { know } from "../static/words.js";
import { all, giveStorage, textOf } from "../../../engine/pages/tests/support.js";

const term = (/** @type {string} */ word, more = {}) => ({ word, mark: /** @type {const} */ ("pending"), ...more });
const inSeconds = (seconds) => new Date(Date.now() + seconds * 1000).toISOString();
const ORDER = { orderId: "b00-1", situation: "open", step: "payment", attempt: 2, threshold: 3 };

beforeEach(() => {
  giveStorage();
  const orders = {
    open: term("Trying"),
    stuck: term("Stuck", { waitsForOperator: true }),
    over: term("Over", { isOver: true }),
  };
  know({ orders, steps: {}, actions: [] });
});

test("an order under way shows its step, its try, the last answer, what is next and its true age", () => {
  const placedAt = inSeconds(-180);
  const order = {
    ...ORDER,
    lastAnswer: "timed out; no answer",
    completeBy: inSeconds(4.5),
    placedAt,
    updatedAt: inSeconds(0),
  };
  assert.deepEqual(all(table([order], UNDER_WAY), "td").map(textOf), [
    "Trying",
    "b00-1",
    text("console.rows.attempt", { step: "payment", attempt: 2, threshold: 3 }),
    "timed out; no answer",
    text("console.rows.due", { time: text("page.time.in", { time: "0:05" }) }),
    ago(inSeconds(-180)),
  ]);
});

test("an order that failed shows the step that failed, why and since when", () => {
  const order = {
    ...ORDER,
    situation: "stuck",
    failedSteps: ["stock"],
    reason: "none left",
    updatedAt: inSeconds(-60),
  };
  assert.deepEqual(all(table([order], ENDED), "td").map(textOf), [
    "Stuck",
    "b00-1",
    "stock",
    "none left",
    ago(inSeconds(-60)),
    "",
  ]);
  assert.equal(stepOf(order), "stock");
});

test("the deadline of an order has a column where an order has one", () => {
  const dueBy = "2026-01-31T08:15:00Z";
  const headings = (orders) => all(table(orders, UNDER_WAY), "th").map(textOf);
  const heading = text("console.column.due-by");
  assert.ok(headings([ORDER, { ...ORDER, dueBy }]).includes(heading));
  assert.ok(!headings([ORDER]).includes(heading));
  const times = all(table([{ ...ORDER, dueBy }], UNDER_WAY), "time").map(
    (/** @type {any} */ time) => time.props.datetime,
  );
  assert.ok(times.includes(dueBy));
});

test("what is next is a person, a time, a scheduler or nothing", () => {
  assert.equal(
    textOf(next({ ...ORDER, notBefore: inSeconds(29.5) })),
    text("console.rows.next-attempt", { time: text("page.time.in", { time: "0:30" }) }),
  );
  assert.equal(textOf(next({ ...ORDER, completeBy: inSeconds(-1) })), text("console.rows.overdue"));
  assert.equal(next(ORDER), text("console.rows.waits-for-scheduler"));
  assert.equal(next({ ...ORDER, situation: "stuck" }), text("console.rows.waits-for-you"));
  assert.equal(next({ ...ORDER, situation: "over" }), "");
});
