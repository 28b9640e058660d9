/** How attempts are read from an order's history. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { attempts, gaps } from "../static/attempts.js";
import { know } from "../static/words.js";

const NOW = 100_000;
const [done, undone, late, failed] = /** @type {const} */ (["processed", "undo", "again", "error"]).map((mark) => ({
  word: `ended as ${mark}`,
  mark,
}));
know({
  orders: {},
  steps: {},
  actions: [],
  events: {
    "step-started": { beginsAttempt: true },
    "step-completed": { endsAttempt: done },
    "step-undone": { endsAttempt: undone },
    expired: { endsAttempt: late },
    "step-failed": { endsAttempt: failed },
    "not-attempted": { endsAttempt: { word: "waited", mark: "waited" } },
    claimed: { endsAttempt: null },
  },
});
/** What was written down, each entry a second after the one before. */
const historyOf = (...entries) =>
  entries.map((events, second) => ({ at: new Date(second * 1000).toISOString(), events }));
const running = { name: "stock", completeBy: "1970-01-01T00:00:30Z" };
const started = { event: "step-started", step: "stock", attempt: 1, isUndo: false };
const completed = { event: "step-completed", step: "stock", attempt: 1 };
const expired = { event: "expired", step: "stock", attempt: 1 };

test("an attempt lasts from the entry that starts it to the one that ends it", () => {
  const history = historyOf([{ event: "submitted" }], [{ event: "claimed" }, started], [completed]);
  assert.deepEqual(attempts({ history, steps: [] }, NOW), [
    { step: "stock", attempt: 1, undo: false, from: 1000, to: 2000, end: done },
  ]);
});

test("one entry may end an attempt and start others", () => {
  const next = [completed, { ...started, step: "payment" }, { ...started, step: "shipment", attempt: 3 }];
  const found = attempts({ history: historyOf([started], next), steps: [] }, NOW);
  assert.deepEqual(
    found.map(({ step, attempt, from, to, end }) => [step, attempt, from, to, end]),
    [
      ["stock", 1, 0, 1000, done],
      ["payment", 1, 1000, NOW, null],
      ["shipment", 3, 1000, NOW, null],
    ],
  );
});

for (const [what, end] of /** @type {[string, import("../static/words.js").Term][]} */ ([
  ["step-completed", done],
  ["step-undone", undone],
  ["expired", late],
  ["step-failed", failed],
]))
  test(`an attempt ends as "${end.mark}" by ${what}`, () => {
    const [found] = attempts(
      { history: historyOf([started], [{ event: what, step: "stock", attempt: 1 }]), steps: [] },
      NOW,
    );
    assert.deepEqual([found.to, found.end], [1000, end]);
  });

test("an attempt whose time was up, and with which the step is given up, has failed", () => {
  const givenUp = { event: "step-failed", step: "stock", attempt: 1 };
  const [found] = attempts({ history: historyOf([started], [expired, givenUp]), steps: [] }, NOW);
  assert.equal(found.end, failed);
});

test("what comes later changes no attempt that has ended", () => {
  const givenUp = { event: "step-failed", step: "stock", attempt: 1 };
  const [found] = attempts({ history: historyOf([started], [completed], [givenUp]), steps: [] }, NOW);
  assert.deepEqual([found.to, found.end], [1000, done]);
});

test("the undo of a step is told from the step", () => {
  const history = historyOf([started], [completed, { ...started, attempt: 2, isUndo: true }]);
  const found = attempts({ history, steps: [] }, NOW);
  assert.deepEqual(
    found.map(({ attempt, undo, end }) => [attempt, undo, end]),
    [
      [1, false, done],
      [2, true, null],
    ],
  );
});

test("an entry ends the attempt of its own step, and of this the one that is meant", () => {
  const history = historyOf(
    [started, { ...started, step: "payment" }],
    [expired, { ...started, attempt: 2 }],
    [{ ...completed, attempt: 2 }],
  );
  const found = attempts({ history, steps: [] }, NOW);
  assert.deepEqual(
    found.map(({ step, to, end }) => [step, to, end]),
    [
      ["stock", 1000, late],
      ["payment", NOW, null],
      ["stock", 2000, done],
    ],
  );
});

test("an attempt that runs lasts until now, and has a time by which it is complete", () => {
  const [found] = attempts({ history: historyOf([started]), steps: [running] }, NOW);
  assert.deepEqual([found.to, found.end, found.completeBy], [NOW, null, 30_000]);
});

test("a reply that was refused ends no attempt, whatever it says", () => {
  const refused = { event: "reply-refused", step: "stock", attempt: 1, why: "declined, stock: see code 14" };
  const history = historyOf([started], [refused]);
  assert.equal(attempts({ history, steps: [running] }, NOW)[0].end, null);
});

test("an attempt of which only another version of the app tells how it ended, ended with the last entry", () => {
  const steps = [{ name: "stock", completeBy: null }];
  const [found] = attempts({ history: historyOf([started], []), steps }, NOW);
  assert.deepEqual([found.to, found.end?.word], [1000, "ended"]);
});

test("where nothing was written down nothing began", () => {
  assert.deepEqual(attempts({ history: [], steps: [running] }, NOW), []);
});

test("an attempt that was not tried says why, and one that failed does not: its step does", () => {
  const because = (what, reason) => {
    const history = historyOf([started], [{ event: what, step: "stock", attempt: 1, reason }]);
    return attempts({ history, steps: [] }, NOW)[0].why;
  };
  assert.equal(because("not-attempted", "circuit open"), "circuit open");
  assert.equal(because("not-attempted", null), undefined);
  assert.equal(because("step-failed", "declined"), undefined);
});

const ran = (from, to, more = {}) => ({ step: "stock", attempt: 1, undo: false, from, to, end: late, ...more });

test("a step waits between its attempts, and since the last one while another is to come", () => {
  const own = [ran(0, 5), ran(8, 12), ran(12, 20)];
  assert.deepEqual(gaps(own, false, 50), [{ from: 5, to: 8 }]);
  assert.deepEqual(gaps(own, true, 50), [
    { from: 5, to: 8 },
    { from: 20, to: 50 },
  ]);
  assert.deepEqual(gaps([ran(0, 50, { end: null })], true, 50), []);
});

test("what was done does not wait for its undo", () => {
  assert.deepEqual(gaps([ran(0, 5), ran(30, 40, { undo: true })], false, 50), []);
});
