/** A search for a customer, which goes through all orders. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { beforeEach, test } from "node:test";

import { text } from "../../../engine/pages/static/common/words.js";
import { placeOf, searchPage } from "../static/search.js";
import { know } from "../static/words.js";
import { all, giveStorage, textOf } from "../../../engine/pages/tests/support.js";

/** What the page shows. */
let shown;
/** The calls that wait for their answer, with the way to give it. */
let calls;
const place = { show: (...children) => void (shown = children), say: () => {}, askKey: () => {}, again: () => {} };
const settled = () => new Promise((resolve) => setImmediate(resolve));
const page = (number, more) => ({
  orders: [`b00-${number}`],
  found: [{ orderId: `b00-${number}`, situation: "over", failedSteps: [], reason: "none left", updatedAt: null }],
  unreadable: [],
  lookedAt: 1000,
  ...(more && { continuation: `b00-${number}` }),
});
const rows = () => all(shown, "tr").slice(1).map(textOf);

beforeEach(() => {
  giveStorage();
  know({ orders: { over: { word: "Undone", mark: "undo" } }, steps: {}, actions: [] });
  calls = [];
  globalThis.FormData = /** @type {any} */ (
    class {
      get = () => "ada@example.com";
    }
  );
  globalThis.fetch = (_, { signal }) =>
    new Promise((resolve, reject) => {
      calls.push({ signal, answer: (body) => resolve(Response.json(body)) });
      signal.addEventListener("abort", () => reject(signal.reason));
    });
});

async function searched() {
  const opened = searchPage(place, new URLSearchParams());
  all(shown, "form")[0].props.onSubmit({ preventDefault: () => {}, target: null });
  await settled();
  return opened;
}

test("it shows what it has looked at and found so far, with how these orders stand", async () => {
  await searched();
  calls[0].answer(page(1, true));
  await settled();
  assert.ok(textOf(shown).includes(text("console.search.looked-at", { count: 1000, found: 1 })));
  assert.deepEqual(rows(), ["Undoneb00-1none left"]);
  calls[1].answer(page(2, false));
  await settled();
  assert.equal(stop(), undefined);
  assert.equal(rows().length, 2);
});

const stop = () => all(shown, "button").find((candidate) => textOf(candidate) === text("console.search.stop"));

test("it can be stopped: it asks no more, and what was found stays", async () => {
  await searched();
  calls[0].answer(page(1, true));
  await settled();
  stop().props.onClick();
  await settled();
  assert.equal(calls[1].signal.aborted, true);
  assert.equal(calls.length, 2);
  assert.equal(rows().length, 1);
  assert.equal(stop(), undefined);
});

test("a page that was left asks no more, and draws on no other page", async () => {
  const opened = await searched();
  opened.stop();
  shown = "another page";
  calls[0].answer(page(1, true));
  await settled();
  assert.equal(calls[0].signal.aborted, true);
  assert.deepEqual([calls.length, shown], [1, "another page"]);
});

const TERMS = JSON.parse(
  readFileSync(new URL("../../../tests/data/inputs/search_terms.json", import.meta.url), "utf8"),
);
for (const [term, wanted] of Object.entries(TERMS))
  test(`"${term}" is looked for in each of its meanings (bugs2 44)`, async () => {
    const [path, query] = placeOf(term).split("?");
    assert.equal(path, "#/search");
    assert.deepEqual(Object.fromEntries(new URLSearchParams(query)), wanted);
    const asked = [];
    globalThis.fetch = async (address) => {
      const url = new URL(address, "http://app");
      asked.push(...url.searchParams.entries());
      const orders = [{ ...page(1, false).found[0], orderId: "b00-both" }];
      return Response.json(url.searchParams.has("id") ? { orders, unreadable: [], more: false } : { orders });
    };
    searchPage(place, new URLSearchParams(query));
    await settled();
    await settled();
    const called = asked.filter(([name]) => name === "id" || name === "key");
    assert.deepEqual(Object.fromEntries(called), wanted);
    assert.equal(rows().length, 1);
  });

test("a whole id leads to its order, and a text that is too long for a key to the open orders with it", () => {
  assert.equal(placeOf("B07-01jcx0000000000000000000a1"), "#/orders/b07-01JCX0000000000000000000A1");
  assert.equal(placeOf("🍵".repeat(50)).split("?")[0], "#/search");
  assert.equal(placeOf("x".repeat(51)).split("?")[0], "#/orders");
});
