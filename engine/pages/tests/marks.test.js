/** How states look. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { LOOK, badge, mark } from "../static/common/marks.js";
import { all, textOf } from "./support.js";

test("each look has a shape of its own", () => {
  const looks = /** @type {const} */ ([
    "pending",
    "processing",
    "processed",
    "error",
    "again",
    "undo",
    "skipped",
    "waited",
  ]);
  const shapes = looks.map((look) => JSON.stringify(mark(look).children));
  assert.equal(new Set(shapes).size, 8);
});

test("each look that pages name has its own shape", () => {
  assert.equal(new Set(Object.values(LOOK)).size, 8);
});

test("a badge says its word, and its shape is hidden from those who hear it", () => {
  const made = badge("error", "Failed");
  assert.equal(textOf(made), "Failed");
  assert.equal(all(made, "svg")[0].props["aria-hidden"], "true");
});
