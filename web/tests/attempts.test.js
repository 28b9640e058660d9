/** How attempts are read from an order's history. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { attempts } from "../static/console/attempts.js";

const NOW = 100_000;
/** What was written down, each entry a second after the one before. */
const historyOf = (...details) =>
  details.map((detail, second) => ({ at: new Date(second * 1000).toISOString(), event: "written", detail }));
const running = { name: "stock", state: "Running", completeBy: "1970-01-01T00:00:30Z" };

test("an attempt lasts from the entry that starts it to the one that ends it", () => {
  const history = historyOf("", "stock attempt 1 started", "stock completed by attempt 1");
  assert.deepEqual(attempts({ history, steps: [] }, NOW), [
    { step: "stock", attempt: 1, undo: false, from: 1000, to: 2000, end: "processed" },
  ]);
});

test("one entry may end an attempt and start others, also at other agents", () => {
  const history = historyOf(
    "stock attempt 1 started",
    "stock completed by attempt 1; payment attempt 1 started at bank; shipment attempt 3 started",
  );
  const found = attempts({ history, steps: [] }, NOW);
  assert.deepEqual(
    found.map(({ step, attempt, from, to, end }) => [step, attempt, from, to, end]),
    [
      ["stock", 1, 0, 1000, "processed"],
      ["payment", 1, 1000, NOW, "processing"],
      ["shipment", 3, 1000, NOW, "processing"],
    ],
  );
});

for (const [detail, end] of [
  ["stock completed by attempt 1", "processed"],
  ["stock undone by attempt 1", "undo"],
  ["stock timed out, failure 1 of 3: the service answered 503", "again"],
  ["stock was not tried: the agent has no room", "again"],
  ["stock attempt 1 came to nothing: stock is not known to have begun it", "again"],
  ["stock: there is none left", "error"],
])
  test(`an attempt ends as "${end}" by "${detail}"`, () => {
    const [found] = attempts({ history: historyOf("stock attempt 1 started", detail), steps: [] }, NOW);
    assert.deepEqual([found.to, found.end], [1000, end]);
  });

test("the undo of a step is told from the step", () => {
  const history = historyOf("stock attempt 1 started", "stock completed by attempt 1; undo of stock attempt 2 started");
  const found = attempts({ history, steps: [] }, NOW);
  assert.deepEqual(
    found.map(({ attempt, undo, end }) => [attempt, undo, end]),
    [
      [1, false, "processed"],
      [2, true, "processing"],
    ],
  );
});

test("an entry ends the attempt of its own step, and of this the last", () => {
  const history = historyOf(
    "stock attempt 1 started; payment attempt 1 started",
    "stock timed out, failure 1 of 3; stock attempt 2 started",
    "stock completed by attempt 2",
  );
  const found = attempts({ history, steps: [] }, NOW);
  assert.deepEqual(
    found.map(({ step, to, end }) => [step, to, end]),
    [
      ["stock", 1000, "again"],
      ["payment", NOW, "processing"],
      ["stock", 2000, "processed"],
    ],
  );
});

test("an entry of the supervisor ends the attempts of all steps whose time was up", () => {
  const both = "stock timed out, failure 1 of 3: away, payment timed out, failure 1 of 3";
  const history = historyOf("stock attempt 1 started; payment attempt 1 started", both);
  const found = attempts({ history, steps: [] }, NOW);
  assert.deepEqual(
    found.map(({ to, end }) => [to, end]),
    [
      [1000, "again"],
      [1000, "again"],
    ],
  );
});

test("an attempt that runs lasts until now, and has a time by which it is complete", () => {
  const [found] = attempts({ history: historyOf("stock attempt 1 started"), steps: [running] }, NOW);
  assert.deepEqual([found.to, found.end, found.completeBy], [NOW, "processing", 30_000]);
});

test("a reply that was refused ends no attempt", () => {
  const refused = { at: "1970-01-01T00:00:02Z", event: "reply-refused", detail: "stock: it came too late" };
  const history = [...historyOf("stock attempt 1 started"), refused];
  assert.equal(attempts({ history, steps: [running] }, NOW)[0].end, "processing");
});

for (const [state, end] of [
  ["Completed", "processed"],
  ["Undone", "undo"],
  ["Failed", "error"],
  ["NotStarted", "again"],
])
  test(`an attempt whose end is not told, of a step that is ${state}, ended as "${end}" with the last entry`, () => {
    const steps = [{ name: "stock", state, completeBy: null }];
    const [found] = attempts({ history: historyOf("stock attempt 1 started", "the order failed"), steps }, NOW);
    assert.deepEqual([found.to, found.end, found.completeBy], [1000, end, undefined]);
  });

test("where nothing was written down nothing began", () => {
  assert.deepEqual(attempts({ history: [], steps: [running] }, NOW), []);
});
