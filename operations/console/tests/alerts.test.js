/** What an alert is about, and where it leads. */

import assert from "node:assert/strict";
import test from "node:test";

import { text } from "../../../engine/pages/static/common/words.js";
import { giveStorage, textOf } from "../../../engine/pages/tests/support.js";

giveStorage();
const { about } = await import("../static/alerts.js");

const CASES = [
  [{ subject: "orders/b01-01JCX4T9Q8ZK7M2N5P6R3S1V0W" }, "#/orders/b01-01JCX4T9Q8ZK7M2N5P6R3S1V0W"],
  [{ subject: "orders-waiting/payment", count: 3 }, "#/orders?state=Pending"],
  [{ subject: "orders-overdue", count: 1 }, "#/orders?state=Processing"],
  [{ subject: "orders-held", count: 2 }, "#/orders?state=Held"],
];

for (const [alert, href] of CASES) {
  test(`${alert.subject} leads to ${href}`, () => {
    const link = about(alert);
    assert.equal(link.props.href, href);
    const { subject, count } = alert;
    const words = count ? text("console.parts.orders", { count }) : subject.split("/")[1];
    assert.ok(textOf(link).includes(words));
  });
}

test("what has no page is named", () => {
  assert.equal(about({ subject: "agents/payment" }), "agents/payment");
});
