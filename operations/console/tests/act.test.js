/** What an operator does to the alerts of a cause. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { giveStorage } from "../../../engine/pages/tests/support.js";
import { takeAll } from "../static/act.js";
import { groupsOf } from "../static/causes.js";

const GRACE = { operator: "grace", note: "I look" };
const CAUSE = { type: "T", step: "pay", cause: "", reason: "no answer" };
/** Two older pages: by where they begin. */
const OLDER = {
  "?continuation=a": { causes: [{ ...CAUSE, unacknowledged: ["3"] }], continuation: "b" },
  "?continuation=b": {
    causes: [
      { ...CAUSE, step: "ship", unacknowledged: ["4"] },
      { ...CAUSE, cause: "no answer", unacknowledged: ["5", "6"] },
    ],
    continuation: null,
  },
};

/** An app where somebody else has taken alert 5; returns what was acknowledged. */
function app(context) {
  const sent = [];
  context.mock.method(globalThis, "fetch", async (path, { body }) => {
    if (!body) return Response.json(OLDER[new URL(path, "http://app").search]);
    const { alerts, operator } = JSON.parse(body);
    assert.equal(operator, GRACE.operator);
    sent.push(alerts);
    const byOthers = alerts.filter((key) => key === "5");
    return Response.json({ acknowledged: alerts.filter((key) => key !== "5"), byOthers, unknown: [] });
  });
  return sent;
}

beforeEach(giveStorage);

test("all alerts of a cause are taken, also those behind the newest (bugs2 53)", async (context) => {
  const sent = app(context);
  const counts = [];
  const cause = { ...CAUSE, unacknowledged: ["1", "2"], older: "a" };
  assert.deepEqual(await takeAll(cause, GRACE, (count) => counts.push(count)), { taken: 4, others: 1 });
  assert.deepEqual(sent, [["1", "2"], ["3"], ["5", "6"]]);
  assert.deepEqual(counts, [2, 3, 4]);
});

test("without older alerts nothing more is asked", async (context) => {
  const sent = app(context);
  const cause = { ...CAUSE, unacknowledged: ["1"], older: null };
  assert.deepEqual(await takeAll(cause, GRACE, () => {}), { taken: 1, others: 0 });
  assert.deepEqual(sent, [["1"]]);
});

test("a reason for which orders wait means the alerts of its step and cause", async (context) => {
  const sent = app(context);
  const waiting = { step: "pay", agent: "payment", cause: "no answer", reason: "no answer", count: 1, first: null };
  const [group] = groupsOf({ agents: [], waitingForOperator: [waiting] }, [], "a");
  assert.deepEqual(await takeAll(group, GRACE, () => {}), { taken: 1, others: 1 });
  assert.deepEqual(sent, [["5", "6"]]);
});
