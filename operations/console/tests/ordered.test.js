/** What an order's page shows of personal data. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { text } from "../../../engine/pages/static/common/words.js";
import { ordered } from "../static/ordered.js";
import { know } from "../static/words.js";
import { all, giveStorage, textOf } from "../../../engine/pages/tests/support.js";

const ORDER = { orderId: "b00-1", payload: { customer: { name: "hidden" } }, hides: true, erased: false };
const action = { name: "look", title: "Show it", button: "Show", effect: "", danger: false, fields: [], lists: [] };
const drawn = (order, view = {}) => ordered({ ...ORDER, ...order }, view, /** @type {any} */ (null), () => {});

beforeEach(() => {
  giveStorage();
  know({ orders: {}, steps: {}, actions: [{ ...action, subject: "personal" }] });
});

test("what is hidden can be asked for, and is not called erased", () => {
  assert.equal(all(drawn({}), "button").length, 1);
  assert.ok(textOf(drawn({})).includes(text("console.ordered.hidden")));
  assert.ok(!textOf(drawn({})).includes(text("console.ordered.erased")));
});

test("what is erased is called so, and cannot be asked for", () => {
  const order = { hides: false, erased: true, payload: { customer: { name: "erased" } } };
  assert.equal(all(drawn(order), "button").length, 0);
  assert.ok(textOf(drawn(order)).includes(text("console.ordered.erased")));
  assert.ok(!textOf(drawn(order)).includes(text("console.ordered.hidden")));
});

test("what was shown stays on the page, and the page asks no more", () => {
  const shown = drawn({}, { revealed: { customer: { name: "Ada" } } });
  assert.match(textOf(shown), /"Ada"/);
  assert.equal(all(shown, "button").length, 0);
});
