/** The page of an order. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { text } from "../../../engine/pages/static/common/words.js";
import { orderPage } from "../static/order.js";
import { know, logOf } from "../static/words.js";
import { giveStorage, textOf } from "../../../engine/pages/tests/support.js";

const AT = "2026-01-31T12:00:00Z";
const EXPLANATION = { summary: "Why.", nextActor: null, nextAt: null, ifNothingHappens: "Nothing." };
const ORDER = { orderId: "b00-1", situation: "s", keys: [], actions: [], steps: [], history: [], placedAt: AT };
const STEP = { name: "pay", state: "NotStarted", attempts: 2, failureCount: 0, threshold: 3 };

/** What the page of this order shows; the order may be JSON. */
async function shown(order) {
  const seen = [];
  globalThis.innerWidth = 1000;
  const json = typeof order === "string" ? order : JSON.stringify(order);
  globalThis.fetch = async (url) => new Response(String(url).endsWith("/explain") ? JSON.stringify(EXPLANATION) : json);
  const place = {
    show: (...children) => void seen.push(textOf(children)),
    say: () => {},
    changed: () => {},
    askKey: () => {},
    again: () => {},
  };
  const page = orderPage(place, new URLSearchParams(), JSON.parse(json).orderId);
  while (!seen.some((text) => text.includes("Why."))) await new Promise((resolve) => setImmediate(resolve));
  page.stop();
  return seen.at(-1);
}

beforeEach(() => {
  giveStorage();
  const document = { hidden: false, addEventListener: () => {}, removeEventListener: () => {} };
  Object.defineProperty(globalThis, "document", { value: document, configurable: true });
  know({ orders: {}, steps: {}, actions: [] });
});

test("an order that is accepted and not recorded yet has no workflow to be drawn", async () => {
  const page = await shown(ORDER);
  assert.match(page, /Why\./);
  assert.doesNotMatch(page, /undefined/);
  assert.ok(!page.includes(text("console.order.workflow")));
});

test("the round of a step is shown from the second on", async () => {
  const history = [{ at: AT, actor: "t", event: "e", detail: "", events: [] }];
  const of = (keyGeneration) => shown({ ...ORDER, payload: {}, history, steps: [{ ...STEP, keyGeneration }] });
  const second = text("console.steps.round", { attempts: 2, round: 2 });
  assert.ok((await of(1)).includes(second));
  for (const round of [0, undefined]) assert.ok(!(await of(round)).includes(second));
});

test("an order leads to its log, where somebody said where that is", async () => {
  const last = text("console.order.copy-json");
  assert.ok(!(await shown(ORDER)).includes(`${last}${text("console.order.log")}`));
  know({ orders: {}, steps: {}, actions: [], logLink: "https://logs.example.com/?q={orderId}" });
  assert.equal(logOf("b00-1 &"), "https://logs.example.com/?q=b00-1%20%26");
  assert.match(await shown(ORDER), /Copy JSONLog/);
});

test("of an order that is taken back it says why, and nothing of what comes otherwise if nothing does", async () => {
  know({ orders: { s: { word: "Undo incomplete", mark: "error", waitsForOperator: true } }, steps: {}, actions: [] });
  const why = text("console.order.undone-because");
  const page = await shown({ ...ORDER, outcome: "undo-incomplete", undoneBecause: "stock: out of stock" });
  assert.ok(!(await shown({ ...ORDER, undoneBecause: "why", reason: "why" })).includes(why));
  assert.ok(page.includes(`${why}stock: out of stock`));
  for (const words of [text("console.order.otherwise"), "undo-incomplete"]) assert.ok(!page.includes(words));
});

test("the deadline of an order is shown, where it has one", async () => {
  const label = text("console.order.due-by");
  assert.ok((await shown({ ...ORDER, dueBy: AT })).includes(label));
  for (const dueBy of [null, undefined]) assert.ok(!(await shown({ ...ORDER, dueBy })).includes(label));
});

test("what was ordered has the numbers that were sent, as they were", async () => {
  // `bugs 2`: the page showed others.
  const numbers = '{"account":9007199254740993,"amount":12345678901234567.89}';
  const history = [{ at: AT, actor: "t", event: "e", detail: "", events: [] }];
  const order = JSON.stringify({ ...ORDER, history, steps: [STEP], payload: "P" }).replace('"P"', numbers);
  const page = await shown(order);
  for (const number of ["9007199254740993", "12345678901234567.89"]) assert.ok(page.includes(number), page);
});
