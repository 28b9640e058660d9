/** What the shop sells, shown on the page that asked for it and on no other. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { productsPage } from "../page/products.js";
import { giveStorage } from "../../engine/pages/tests/support.js";

const settled = () => new Promise((resolve) => setImmediate(resolve));
/** How often something was shown. */
let shown = 0;
/** Let the app give its answer. @type {() => void} */
let answer;
const place = { show: () => void shown++, say: () => {}, changed: () => {} };

beforeEach(() => {
  giveStorage();
  const answered = new Promise((resolve) => (answer = () => resolve(undefined)));
  globalThis.fetch = async () => {
    await answered;
    return Response.json({ products: [] });
  };
});

test("the shop shows its products, unless its page was left", async () => {
  const leave = productsPage(place);
  leave();
  answer();
  await settled();
  assert.equal(shown, 1);
  productsPage(place);
  await settled();
  assert.equal(shown, 3);
});
