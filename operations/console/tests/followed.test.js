/** What became of the orders of a bulk action. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

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
    "103 orders resubmitted by you: 78 ended, 20 under way, 5 failed again. ",
  );
  assert.equal(words(followed(1), became(1, 0, 0)), "1 order resubmitted by you: 1 ended. ");
});

test("where not all open orders were read, none is said to have ended", () => {
  assert.match(words(followed(2), became(2, 0, 0, true)), /2 seem to have ended/);
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
  assert.equal(JSON.parse(sessionStorage.getItem("followed") ?? "").orders.length, 2000);
});
