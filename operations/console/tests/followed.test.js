/** What became of the orders of a bulk action. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { text } from "../../../engine/pages/static/common/words.js";
import { follow, isFinal, words } from "../static/followed.js";
import { giveStorage } from "../../../engine/pages/tests/support.js";

const ids = (count) => Array.from({ length: count }, (_, number) => `b00-${number}`);
const became = (over, underWay, failed, mayBeOpen = false) => ({
  over: ids(over),
  underWay: ids(underWay),
  failed: ids(failed),
  mayBeOpen,
});
const followed = (count) => ({ done: "resubmitted", orders: ids(count), since: "2026-01-31T08:00:00Z" });

beforeEach(() => {
  giveStorage();
  Object.defineProperty(globalThis, "dispatchEvent", { value: () => true, configurable: true });
});

test("they are told by how they stand, and none of which there is none", () => {
  assert.equal(
    words(followed(103), became(78, 20, 5)),
    text("console.followed.all", {
      count: 103,
      done: "resubmitted",
      became: [
        text("console.followed.over", { count: 78 }),
        text("console.followed.under-way", { count: 20 }),
        text("console.followed.failed", { count: 5 }),
      ].join(", "),
    }),
  );
  assert.equal(
    words(followed(1), became(1, 0, 0)),
    text("console.followed.all", {
      count: 1,
      done: "resubmitted",
      became: text("console.followed.over", { count: 1 }),
    }),
  );
});

test("where not all open orders were read, none is said to have ended", () => {
  assert.ok(words(followed(2), became(2, 0, 0, true)).includes(text("console.followed.maybe-over", { count: 2 })));
});

test("the page asks on while an order is under way, or may be", () => {
  assert.ok(isFinal(became(2, 0, 1)));
  assert.ok(!isFinal(became(1, 1, 0)));
  assert.ok(!isFinal(became(2, 0, 0, true)));
});

test("orders are followed through a reload, as many as the app takes, and nobody follows none", () => {
  follow(followed(0));
  assert.equal(sessionStorage.getItem("followed"), null);
  follow(followed(2500));
  const kept = JSON.parse(sessionStorage.getItem("followed") ?? "");
  assert.equal(kept.orders.length, 2000);
  const over = text("console.followed.over", { count: 2000 });
  const facts = { count: 2000, all: 2500, done: "resubmitted", became: over };
  assert.equal(words(kept, became(2000, 0, 0)), text("console.followed.first", facts)); // bugs2 53
});
