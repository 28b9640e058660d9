/** The steps of an order in words. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { text } from "../../../engine/pages/static/common/words.js";
import { all, giveStorage, textOf } from "../../../engine/pages/tests/support.js";

giveStorage();
const { steps } = await import("../static/steps.js");

const step = { name: "ship", state: "NotStarted", attempts: 0, failureCount: 0, threshold: 3, agent: "depot" };
const cells = (more) => all(steps({ steps: [{ ...step, ...more }] }), "td").map(textOf);

test("a step says that it is a point of no return", () => {
  assert.equal(cells({ pivot: true })[0], `ship${text("console.steps.pivot")}`);
  assert.equal(cells({ pivot: null })[0], "ship");
});

test("a step says before which time it does not begin", () => {
  assert.match(cells({ notBefore: "2026-02-01T08:15:00Z" }).at(-1), /:\d\d/);
  assert.equal(cells({ notBefore: null }).at(-1), "");
});

test("a step says its exact state, or for what it waits, where that says more than its word", () => {
  assert.match(
    cells({ exactState: "CoolingDown", wait: "CoolingDown" })[1],
    new RegExp(`${text("console.exact.CoolingDown")}$`),
  );
  assert.match(
    cells({ state: "Undoing", exactState: "UndoPending", wait: "BackingOff" })[1],
    new RegExp(`${text("console.exact.BackingOff")}$`),
  );
  assert.equal(cells({ exactState: "Waiting", wait: "Waiting" })[1], cells({})[1]);
  assert.equal(cells({ state: "Running", exactState: "Running", wait: null })[1], cells({ state: "Running" })[1]);
});

test("a step that was skipped says why", () => {
  assert.equal(
    cells({ state: "Skipped", reason: "condition above_limit is not met" }).at(-1),
    "condition above_limit is not met",
  );
});

test("a step says how often it was tried, and how often in vain if it ever was", () => {
  assert.equal(cells({ attempts: 2 })[2], "2");
  assert.equal(
    cells({ attempts: 2, failureCount: 1 })[2],
    `2, ${text("console.steps.failed", { failed: 1, threshold: 3 })}`,
  );
});
