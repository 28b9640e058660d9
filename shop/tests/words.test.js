/** What customers are told of their orders. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { hasEnded, orderWords, stepWords } from "../page/words.js";

const AGAIN = "Taking longer; we try again";
for (const [state, again, ended, look, words, more] of [
  ["NotStarted", false, false, "pending", "Checking payment", ""],
  ["NotStarted", true, false, "again", "Checking payment", AGAIN],
  ["Running", false, false, "processing", "Checking payment", ""],
  ["Running", true, false, "again", "Checking payment", AGAIN],
  ["Completed", true, false, "processed", "Payment checked", ""],
  ["Skipped", false, false, "processed", "Payment checked", ""],
  ["Failed", false, false, "error", "Checking payment", "A person is looking at it"],
  ["Failed", false, true, "error", "Checking payment", "This could not be done"],
  ["Undoing", false, false, "undo", "Taking it back", "Checking payment"],
  ["Undone", false, true, "undo", "Payment released", ""],
  ["Unheard", false, false, "pending", "Checking payment", ""],
])
  test(`payment that is ${state}${again ? ", tried again" : ""}${ended ? ", at the end" : ""}: "${words}"`, () => {
    const step = { name: "payment", state: String(state) };
    assert.deepEqual(stepWords(step, Boolean(again), Boolean(ended)), { look, words, more });
  });

test("a step of which the app says that it is tried again needs nobody who saw it", () => {
  assert.equal(stepWords({ name: "stock", state: "Running", tryingAgain: true }, false, false).look, "again");
});

test("a step of another business is called by its name", () => {
  assert.equal(stepWords({ name: "engraving", state: "Completed" }, false, false).words, "engraving: done");
  assert.equal(stepWords({ name: "engraving", state: "Undone" }, false, false).words, "engraving: taken back");
});

const order = (processState, more = {}) => ({ processState, steps: [], ...more });
const undoing = { steps: [{ name: "stock", state: "Undoing" }] };
const undone = { steps: [{ name: "stock", state: "Undone" }] };
for (const [given, slow, look, line] of [
  [order("Processed"), true, "processed", "All done. Your parcel is on its way."],
  [order("Error"), true, "error", "A person is looking at it."],
  [order("Error", undoing), false, "error", "A person is looking at it."],
  [order("Error", { outcome: "undone" }), false, "undo", "Cancelled; all taken back."],
  [order("Accepted"), true, "pending", "One moment."],
  [order("Processing", undoing), true, "undo", "Your order is being cancelled."],
  [order("Pending", undone), false, "undo", "Your order is being cancelled."],
  [order("Processing"), true, "again", "Taking longer; we try again."],
  [order("Pending"), false, "processing", "We are on it."],
])
  test(`of an order with ${JSON.stringify(given)}${slow ? " that is slow" : ""} is said: "${line}"`, () => {
    const words = orderWords(given, slow);
    assert.deepEqual([words.look, words.line], [look, line]);
  });

for (const [capture, next] of [
  [[], "You were not charged."],
  [[{ name: "capture", state: "NotStarted" }], "You were not charged."],
  [[{ name: "capture", state: "Undone" }], "What was paid goes back to you."],
  [[{ name: "capture", state: "Failed" }], "What was paid goes back to you."],
])
  test(`who cancelled, with capture as in ${JSON.stringify(capture)}, hears: "${next}"`, () => {
    const steps = [{ name: "payment", state: "Undone" }, ...capture];
    assert.equal(orderWords(order("Error", { outcome: "undone", steps }), false).next, next);
  });

test("an order has ended once it is processed or undone, and not while a person is to look at it", () => {
  assert.equal(hasEnded(order("Processed")), true);
  assert.equal(hasEnded(order("Error", { outcome: "undone" })), true);
  assert.equal(hasEnded(order("Error")), false);
  assert.equal(hasEnded(order("Processing")), false);
});
