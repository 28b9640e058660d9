/** An answer that comes when its page was left is shown on no other page. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { text } from "../../../engine/pages/static/common/words.js";
import { searchPage } from "../static/search.js";
import { giveStorage, textOf } from "../../../engine/pages/tests/support.js";

const ANSWERS = { orders: [], unreadable: [], more: false };
/** What pages have shown and said, the last at the end. @type {string[]} */
let shown;
/** Let the app give its answer. @type {() => void} */
let answer;
const place = {
  show: (...children) => void shown.push(textOf(children)),
  say: (text) => void shown.push(text),
  changed: () => {},
  askKey: () => {},
  again: () => {},
};
const settled = () => new Promise((resolve) => setImmediate(resolve));

beforeEach(() => {
  giveStorage();
  shown = [];
  const answered = new Promise((resolve) => (answer = () => resolve(undefined)));
  globalThis.fetch = async () => {
    await answered;
    return Response.json(ANSWERS);
  };
});

test("a search says and shows what it found, unless its page was left", async () => {
  const left = searchPage(place, new URLSearchParams({ id: "b00-1" }));
  left.stop();
  shown = [];
  answer();
  await settled();
  assert.deepEqual(shown, []);
  searchPage(place, new URLSearchParams({ id: "b00-1" }));
  await settled();
  assert.deepEqual(shown.slice(-2, -1), [text("console.search.found", { count: 0 })]);
  assert.ok(shown.at(-1)?.includes(text("console.search.none")));
});

test("a search that failed says why, unless its page was left", async () => {
  globalThis.fetch = async () => Response.json({ title: "The tables are away" }, { status: 503 });
  searchPage(place, new URLSearchParams({ id: "b00-1" })).stop();
  shown = [];
  await settled();
  assert.deepEqual(shown, []);
  searchPage(place, new URLSearchParams({ id: "b00-1" }));
  await settled();
  assert.match(shown.at(-1) ?? "", /The tables are away/);
});
