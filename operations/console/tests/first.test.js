/** What the console's first page makes of an overview. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { text } from "../../../engine/pages/static/common/words.js";
import { setServerTime } from "../../../engine/pages/static/common/time.js";
import { sentence } from "../static/first.js";
import { know } from "../static/words.js";
import { isLate, openCircuits, poisoned, services } from "../static/system.js";
import { all, giveStorage, textOf } from "../../../engine/pages/tests/support.js";

const later = (seconds) => new Date(Date.now() + seconds * 1000).toISOString();
const [soon, soonest] = [later(60), later(30)];
const none = { count: 0, atLeast: false };
const well = () => ({
  openOrders: { Stuck: none, Waiting: none, Busy: none, Frozen: { count: 9, atLeast: true } },
  agents: [],
  lastSweep: { at: later(0) },
  poison: {},
});
const shown = (/** @type {string} */ title, more = {}) => ({
  title,
  mark: /** @type {const} */ ("pending"),
  parts: [title],
  ...more,
});
beforeEach(() => {
  giveStorage();
  know({
    orders: {},
    steps: {},
    actions: [],
    lists: {
      Stuck: shown("Stuck", { waitsForOperator: true }),
      Waiting: shown("Waiting", { isUnderWay: true }),
      Busy: shown("Busy", { isUnderWay: true }),
      Frozen: shown("Frozen"),
    },
  });
});

test("a circuit is open if it is at all instances of an agent, until the first of these tries again", () => {
  const agents = [
    { agent: "payment", openUntil: soon },
    { agent: "payment", openUntil: soonest },
    { agent: "stock", openUntil: soon },
    { agent: "stock", openUntil: null },
    { agent: "shipment", openUntil: later(-1) },
  ];
  assert.deepEqual(openCircuits({ agents }), [["payment", soonest]]);
});

test("a supervisor is late that has not swept for more than a minute, or never", () => {
  assert.deepEqual(
    [{ at: later(-50) }, { at: later(-70) }, null].map((lastSweep) => isLate({ lastSweep })),
    [false, true, true],
  );
});

test("a browser whose clock is wrong takes no supervisor for late and no circuit for closed", (context) => {
  const [swept, until] = [later(0), later(60)];
  const real = Date.now();
  context.mock.method(Date, "now", () => real + 600_000);
  setServerTime(new Date(real).toUTCString());
  assert.equal(isLate({ lastSweep: { at: swept } }), false);
  assert.deepEqual(openCircuits({ agents: [{ agent: "payment", openUntil: until }] }), [["payment", until]]);
  setServerTime(new Date(Date.now()).toUTCString());
});

test("an agent that an operator paused shows who paused it and why, and can be resumed; the others can be paused", () => {
  const paused = [{ agent: "payment", by: "grace", because: "bank maintenance", until: soon }];
  const [payment, stock] = all(services({ agentNames: ["payment", "stock"], pausedAgents: paused }, null), "li");
  assert.ok(
    textOf(payment).includes(text("console.system.paused-by", { operator: "grace", reason: "bank maintenance" })),
  );
  const button = (row) => textOf(all(row, "button"));
  assert.equal(button(payment), `${text("console.system.resume")} payment`);
  assert.equal(button(stock), `${text("console.system.pause")} stock`);
  assert.equal(services({ agentNames: [], pausedAgents: [] }, null), false);
});

test("messages that could not be read are counted over all queues", () => {
  const poison = { events: { count: 2, atLeast: false }, replies: { count: 100, atLeast: true } };
  assert.deepEqual(poisoned({ poison }), { count: 102, atLeast: true });
});

test("where nobody is needed, what is under way is told", () => {
  assert.equal(sentence(well()), text("console.first.well"));
  const openOrders = { Stuck: none, Waiting: { count: 1 }, Busy: { count: 2 } };
  assert.equal(sentence({ ...well(), openOrders }), text("console.first.under-way", { count: 3 }));
});

test("all that needs a person stands in one sentence", () => {
  const overview = { ...well(), lastSweep: null, poison: { events: { count: 1, atLeast: false } } };
  overview.openOrders = { ...overview.openOrders, Stuck: { count: 200, atLeast: true } };
  assert.equal(
    sentence(overview),
    [
      `${text("console.first.failed", { count: 200, orders: "200+" })}; `,
      `${text("console.first.never-swept")}; ${text("console.first.unreadable", { count: 1, messages: "1" })}.`,
    ].join(""),
  );
  const counted = (count, atLeast) => ({ ...well(), poison: { events: { count, atLeast } } });
  const said = (count, messages) => `${text("console.first.unreadable", { count, messages })}.`;
  assert.equal(sentence(counted(2, false)), said(2, "2"));
  assert.equal(sentence(counted(100, true)), said(100, "100+"));
});

test("the sentence says how many of the orders somebody has taken", () => {
  const overview = well();
  overview.openOrders = { ...overview.openOrders, Stuck: { count: 150, atLeast: false } };
  assert.equal(
    sentence(overview, 103),
    `${text("console.first.failed-taken", { count: 150, orders: "150", taken: 103 })}.`,
  );
});
