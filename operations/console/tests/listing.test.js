/** What changed in a list since it was shown. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { differences } from "../static/listing.js";

const [one, other] = [{ orderId: "b00-1", reason: "none left" }, { orderId: "b00-2" }];

test("a list differs in nothing from itself, in whatever order it is", () => {
  assert.equal(differences([one, other], [{ ...other }, { ...one }]), 0);
});

test("an order that came, one that went and one that changed are a difference each", () => {
  assert.equal(differences([], [one]), 1);
  assert.equal(differences([one], []), 1);
  assert.equal(differences([one], [{ ...one, reason: "broken" }]), 1);
  assert.equal(differences([one, other], [{ ...one, reason: "broken" }, { orderId: "b00-3" }]), 3);
});
