/** What the shop keeps in the browser. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import {
  anotherPurchase,
  basket,
  bought,
  count,
  keepLine,
  mine,
  money,
  put,
  quantityOf,
  things,
  total,
} from "../page/store.js";
import { giveStorage } from "../../engine/pages/tests/support.js";

const assam = { sku: "TEA-1", name: "Assam", cents: 350, currency: "EUR" };
const pot = { sku: "POT-1", name: "Pot", cents: 2000, currency: "EUR" };
beforeEach(giveStorage);

test("a product is in the basket once, with the quantity that was put last", () => {
  put(assam, 1);
  put(pot, 1);
  put(assam, 3);
  assert.deepEqual(basket().lines, [
    { ...assam, quantity: 3 },
    { ...pot, quantity: 1 },
  ]);
  assert.equal(quantityOf("TEA-1"), 3);
});

test("none of a product takes it out, and nobody gets more than a thousand", () => {
  put(assam, 1);
  put(assam, 0);
  put(pot, 1001);
  assert.deepEqual(basket().lines, [{ ...pot, quantity: 1000 }]);
  assert.equal(quantityOf("TEA-1"), 0);
});

test("a basket is one purchase, whatever is put into it, until it is to be another", () => {
  put(assam, 1);
  const { key } = basket();
  assert.match(key, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  put(pot, 1);
  assert.equal(basket().key, key);
  anotherPurchase();
  assert.notEqual(basket().key, key);
  assert.equal(basket().lines.length, 2);
});

test("an order that was accepted empties the basket, and stands before those of earlier", () => {
  for (const id of ["b00-1", "b00-2"]) {
    put(assam, 2);
    bought(id);
  }
  assert.deepEqual(basket(), { key: "", lines: [] });
  assert.deepEqual(
    mine().map(({ id, lines }) => [id, lines]),
    [
      ["b00-2", [{ ...assam, quantity: 2 }]],
      ["b00-1", [{ ...assam, quantity: 2 }]],
    ],
  );
});

test("the browser remembers the fifty newest orders", () => {
  for (let number = 0; number < 51; number++) bought(`b00-${number}`);
  assert.deepEqual([mine().length, mine()[0].id, mine()[49].id], [50, "b00-50", "b00-1"]);
});

test("what was last said of an order is kept with this one", () => {
  bought("b00-1");
  bought("b00-2");
  keepLine("b00-1", "We are on it.");
  assert.deepEqual(
    mine().map(({ said }) => said),
    [undefined, "We are on it."],
  );
});

test("lines cost what their things cost together", () => {
  const lines = [
    { ...assam, quantity: 2 },
    { ...pot, quantity: 1 },
  ];
  assert.deepEqual([count(lines), things(lines), total(lines)], [3, "3 items", "€27.00"]);
  assert.equal(things([{ ...pot, quantity: 1 }]), "1 item");
  assert.equal(money(5, "GBP"), "£0.05");
});
