/** How a text of the catalogue gets its values. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { named, rich, text } from "../static/common/words.js";
import { all, textOf } from "./support.js";

const { h } = await import("../static/common/dom.js");

test("a text has its values, and numbers as its language writes them", () => {
  const shown = text("console.search.looked-at", { count: 1234, found: 5 });
  assert.match(shown, /1,234\b.*\b5\b/);
  assert.doesNotMatch(shown, /[{}]/);
});

test("one has a form of its own, and none and many have the other", () => {
  const [none, one, many] = [0, 1, 2].map((count) => text("console.parts.orders", { count }).replace(/\d/, ""));
  assert.notEqual(one, many);
  assert.equal(none, many);
});

test("a value may be an element, which stays one", () => {
  const shown = rich("console.search.unreadable", { order: h("a", null, "b00-1") });
  assert.equal(textOf(all(shown, "a")), "b00-1");
  assert.equal(textOf(shown), text("console.search.unreadable", { order: "b00-1" }));
});

test("a value stays as it is, whatever it holds", () => {
  const order = "{order} $1 <b>";
  assert.ok(text("console.search.unreadable", { order }).includes(order));
});

test("a key that the catalogue lacks is a fault, and so is a value that is not given", () => {
  assert.throws(() => text(/** @type {any} */ ("console.no-such-key")), /no-such-key/);
  assert.throws(() => text("console.search.unreadable"), /order/);
});

test("a name of the API has its word, and one of another version is its own", () => {
  assert.notEqual(named("console.exact", "CoolingDown"), "CoolingDown");
  assert.equal(named("console.exact", "Levitating"), "Levitating");
});
