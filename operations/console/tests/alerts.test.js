/** What an alert is about, and where it leads. */

import assert from "node:assert/strict";
import test from "node:test";

import { giveStorage, textOf } from "../../../engine/pages/tests/support.js";

giveStorage();
const { about } = await import("../static/alerts.js");

const CASES = [
  [{ subject: "orders/b01-01JCX4T9Q8ZK7M2N5P6R3S1V0W" }, "#/orders/b01-01JCX4T9Q8ZK7M2N5P6R3S1V0W", "b01-"],
  [{ subject: "orders-waiting/payment", count: 3 }, "#/orders?state=Pending", "3 orders"],
  [{ subject: "orders-overdue", count: 1 }, "#/orders?state=Processing", "1 order,"],
  [{ subject: "orders-held", count: 2 }, "#/orders?state=Held", "2 orders"],
];

for (const [alert, href, words] of CASES) {
  test(`${alert.subject} leads to ${href}`, () => {
    const link = about(alert);
    assert.equal(link.props.href, href);
    assert.ok(textOf(link).includes(words));
  });
}

test("what has no page is named", () => {
  assert.equal(about({ subject: "agents/payment" }), "agents/payment");
});
