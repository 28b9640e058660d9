/** How states look. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { badge, mark, orderLook, stepLook } from "../static/common/marks.js";
import { all, textOf } from "./support.js";

for (const [order, look, word] of [
  [{ processState: "Pending" }, "pending", "Pending"],
  [{ processState: "Processing" }, "processing", "Processing"],
  [{ processState: "Processed" }, "processed", "Processed"],
  [{ processState: "Error" }, "error", "Error"],
  [{ processState: "Unheard" }, "pending", "Unheard"],
  [{ processState: "Pending", failureCount: 1 }, "again", "Trying again"],
  [{ processState: "Processing", failureCount: 1 }, "again", "Trying again"],
  [{ processState: "Error", failureCount: 3 }, "error", "Error"],
  [{ processState: "Processing", failureCount: 1, direction: "undo" }, "undo", "Being undone"],
  [{ processState: "Error", direction: "undo" }, "error", "Error"],
  [{ processState: "Error", outcome: "undone" }, "undo", "Undone"],
])
  test(`an order with ${JSON.stringify(order)} looks like "${look}" and is called "${word}"`, () => {
    assert.deepEqual(orderLook(order), { look, word });
  });

for (const [step, look, word] of [
  [{ state: "NotStarted" }, "pending", "Not started"],
  [{ state: "Running", failureCount: 0, threshold: 3 }, "processing", "Running"],
  [{ state: "Running", failureCount: 1, threshold: 3 }, "again", "Trying again, 2 of 3"],
  [{ state: "NotStarted", failureCount: 2, threshold: 3 }, "again", "Trying again, 3 of 3"],
  [{ state: "Completed", failureCount: 1, threshold: 3 }, "processed", "Completed"],
  [{ state: "Failed", failureCount: 3, threshold: 3 }, "error", "Failed"],
  [{ state: "Undoing" }, "undo", "Undoing"],
  [{ state: "Undone" }, "undo", "Undone"],
  [{ state: "Skipped" }, "pending", "Skipped"],
  [{ state: "Unheard" }, "pending", "Unheard"],
])
  test(`a step with ${JSON.stringify(step)} looks like "${look}" and is called "${word}"`, () => {
    assert.deepEqual(stepLook(step), { look, word });
  });

test("each look has a shape of its own", () => {
  const looks = /** @type {const} */ (["pending", "processing", "processed", "error", "again", "undo"]);
  const shapes = looks.map((look) => JSON.stringify(mark(look).children));
  assert.equal(new Set(shapes).size, 6);
});

test("a badge says its word, and its shape is hidden from those who hear it", () => {
  const made = badge("error", "Failed");
  assert.equal(textOf(made), "Failed");
  assert.equal(all(made, "svg")[0].props["aria-hidden"], "true");
});
