/** Small things that several pages show. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { atLeast, listOf, many, text } from "../static/console/parts.js";
import { all, textOf } from "./support.js";

test("one is said in the singular, and none or more in the plural", () => {
  assert.deepEqual(
    [many(1, "order"), many(0, "order"), many(1234, "order"), many(1, "entry", "entries"), many(2, "entry", "entries")],
    ["1 order", "0 orders", "1,234 orders", "1 entry", "2 entries"],
  );
});

test("a number that may be only the least has a plus", () => {
  assert.equal(atLeast({ count: 2000, atLeast: true }), "2,000+");
  assert.equal(atLeast({ count: 3, atLeast: false }), "3");
});

test("the address of a list names what is asked for, whatever it holds, and nothing else", () => {
  assert.equal(
    listOf({ state: "Error", step: "", reason: "a & b=c", text: null, workflow: undefined }),
    "#/orders?state=Error&reason=a+%26+b%3Dc",
  );
});

test("a text is shown whole, or its beginning with the rest behind it", () => {
  assert.equal(text("abc", 3), "abc");
  const long = text("abcd", 3);
  assert.equal(textOf(all(long, "summary")), "abc…");
  assert.equal(textOf(all(long, "span")), "d");
});
