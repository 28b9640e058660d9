/** A page that follows what it shows, in an hour in which the app does not do what it should. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { clock, duration } from "../../../engine/pages/static/common/time.js";
import { text } from "../../../engine/pages/static/common/words.js";
import { live } from "../static/live.js";
import { know } from "../static/words.js";
import { giveStorage, textOf } from "../../../engine/pages/tests/support.js";

const place = {
  show: (...children) => void (shown = textOf(children)),
  say: () => {},
  askKey: () => {},
  again: () => {},
};
/** What the page shows. */
let shown = "";
/** What the app answers. */
let answer;
const settled = () => new Promise((resolve) => setImmediate(resolve));

beforeEach(() => {
  giveStorage();
  const document = { title: "", hidden: false, addEventListener: () => {}, removeEventListener: () => {} };
  Object.defineProperty(globalThis, "document", { value: document, configurable: true });
  know({ orders: {}, steps: {}, actions: [] });
});

/** A page of the names in an answer. @param {Partial<import("../static/live.js").Page<any>>} more */
const opened = (more = {}) =>
  live(place, {
    title: "Names",
    load: async () => answer,
    draw: ({ names }) => names.join(),
    every: () => 10,
    ...more,
  });

test("an answer of another shape is said, what was shown stays, and the page goes on asking", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  answer = { names: ["Ada"] };
  const page = opened();
  await settled();
  answer = { persons: [] };
  page.now();
  await settled();
  for (const key of /** @type {const} */ (["page.api.misunderstood", "console.live.reload"]))
    assert.ok(shown.includes(text(key)));
  assert.match(shown, /Ada$/);
  answer = { names: ["Grace"] };
  context.mock.timers.tick(3_000);
  await settled();
  assert.match(shown, /Grace$/);
  assert.ok(!shown.includes(text("page.api.misunderstood")));
  page.stop();
});

const updated = (seconds) => text("console.live.updated", { duration: duration(seconds) });

test("a page says how old it is, and loudly once it is older than two looks", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout", "Date"], now: Date.parse("2026-01-31T12:00:00Z") });
  answer = { names: ["Ada"] };
  const page = opened();
  await settled();
  assert.equal(shown, `${updated(0)}Ada`);
  context.mock.timers.setTime(Date.now() + 20_000);
  page.redraw();
  assert.equal(shown, `${updated(20)}Ada`);
  context.mock.timers.setTime(Date.now() + 1_000);
  page.redraw();
  assert.equal(shown, `${updated(21)}${text("console.live.late", { time: clock(Date.now() - 21_000) })}Ada`);
  page.stop();
});

test("a page that asks no more is never too old", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  answer = { names: ["Ada"] };
  const page = opened({ every: () => null });
  await settled();
  context.mock.timers.setTime(Date.now() + 3_600_000);
  page.redraw();
  assert.equal(shown, `${updated(3600)}Ada`);
  page.stop();
});

test("the browser calls a page by what it shows", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  answer = { names: ["Ada", "Grace"] };
  const page = opened({ heading: ({ names }) => `(${names.length}) Names` });
  await settled();
  assert.equal(document.title, "(2) Names");
  page.stop();
});
