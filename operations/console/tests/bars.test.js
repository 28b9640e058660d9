/** The attempts at the steps of an order, as bars. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { text } from "../../../engine/pages/static/common/words.js";
import { bars } from "../static/bars.js";
import { know } from "../static/words.js";
import { all, giveStorage, textOf } from "../../../engine/pages/tests/support.js";

const at = (second) => new Date(Date.now() - 60_000 + second * 1000).toISOString();
const entry = (second, event, more = {}) => ({ at: at(second), events: [{ event, step: "pay", attempt: 1, ...more }] });
const waits = { name: "pay", state: "NotStarted", completeBy: null };

beforeEach(() => {
  giveStorage();
  know({
    orders: { over: { word: "", mark: "processed", isOver: true } },
    steps: { NotStarted: { word: "", mark: "pending", mayBeTriedAgain: true } },
    actions: [],
    events: {
      began: { beginsAttempt: true },
      late: { endsAttempt: { word: "no answer in time", mark: "again" } },
      idle: { endsAttempt: { word: "not attempted", mark: "waited" } },
    },
  });
});

const history = [
  entry(0, "began"),
  entry(5, "late"),
  entry(7, "began", { attempt: 2 }),
  entry(8, "idle", { attempt: 2, reason: "circuit open" }),
];

test("what was not tried is no answer that came too late, and waiting is told", () => {
  const [picture] = all(bars({ situation: "under way", steps: [waits], history }), "svg").slice(1);
  const label = picture.props["aria-label"];
  const waited = (seconds) => text("console.bars.waited", { time: text("page.time.seconds", { count: seconds }) });
  assert.match(label, new RegExp(`no answer in time .*5\\.0.*; ${waited("2.0")}; .*2`));
  assert.match(label, new RegExp(`not attempted .*1\\.0.*: circuit open; ${waited("5\\d\\.\\d")}$`));
  assert.deepEqual(
    all(picture, "g").map(({ props }) => props.class),
    ["again", "waited"],
  );
});

test("of an order that goes on a line says what time it is, and of one that is over none does", () => {
  const lines = (situation) =>
    all(bars({ situation, steps: [waits], history }), "line").filter(({ props }) => props.class === "now");
  assert.equal(lines("under way").length, 1);
  assert.equal(lines("over").length, 0);
  const caption = (situation) => textOf(all(bars({ situation, steps: [waits], history }), "figcaption"));
  assert.notEqual(caption("under way"), caption("over"));
});

test("a step that is done waits for nothing, though its order goes on", () => {
  const done = { ...waits, state: "Completed" };
  const labels = all(bars({ situation: "under way", steps: [done], history }), "svg").map(
    ({ props }) => props["aria-label"],
  );
  assert.match(labels[1], /circuit open$/);
});
