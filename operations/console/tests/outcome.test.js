/** What an operator says of a step in doubt. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { DONE, LATE, NOT_DONE, outcomeFields, outcomeOf } from "../static/outcome.js";

test("a step that was done is sent with its answer", () => {
  assert.deepEqual(outcomeOf({ outcome: DONE, answer: '{"reference": "P-1"}' }), {
    wasDone: true,
    answer: { reference: "P-1" },
  });
});

test("an answer that is no object is not sent", () => {
  assert.throws(() => outcomeOf({ outcome: DONE, answer: "[1]" }));
});

test("a step that was not done is sent without one, and a late effect only if it was confirmed", () => {
  assert.deepEqual(outcomeOf({ outcome: NOT_DONE, answer: "{}" }), { wasDone: false });
  assert.deepEqual(outcomeOf({ outcome: LATE, answer: "{}" }), { wasDone: false, confirmLateEffect: true });
});

test("nothing is confirmed unless it is chosen", () => {
  const [{ choices }] = outcomeFields().choices;
  assert.deepEqual(outcomeOf({ outcome: choices[0], answer: "{}" }), { wasDone: false });
});
