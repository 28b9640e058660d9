/** What a call to the app's API asks of the browser. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { text } from "../../../engine/pages/static/common/words.js";
import { call } from "../../../engine/pages/static/common/api.js";
import { send, sinceActing } from "../static/session.js";
import { giveStorage } from "../../../engine/pages/tests/support.js";

test("nothing of what was answered is left on the disk", async (context) => {
  const calls = context.mock.method(globalThis, "fetch", async () => Response.json({}));
  await call("/api/operator/orders");
  assert.equal(calls.mock.calls[0].arguments[1].cache, "no-store");
});

test("a call that never ends is given up in time, and says so", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  context.mock.method(globalThis, "fetch", neverAnswers);
  const called = call("/api/operator/orders", { signal: new AbortController().signal });
  context.mock.timers.tick(15_000);
  await assert.rejects(called, { status: 0, message: text("page.api.late", { seconds: 15 }) });
});

test("a page that is left gets no problem of its call", async (context) => {
  const left = new AbortController();
  context.mock.method(globalThis, "fetch", neverAnswers);
  const called = call("/api/operator/orders", { signal: left.signal });
  left.abort();
  await assert.rejects(called, { name: "AbortError" });
});

test("an action that nobody answers may have been done", async (context) => {
  giveStorage();
  context.mock.timers.enable({ apis: ["setTimeout"] });
  context.mock.method(globalThis, "fetch", neverAnswers);
  const acted = send("/api/operator/bulk", {});
  context.mock.timers.tick(60_000);
  await assert.rejects(acted, ({ faults }) => faults.includes(text("console.session.maybe-done")));
});

test("what is asked after an action is no reading from before it", async (context) => {
  giveStorage();
  let now = 1_000_000;
  context.mock.method(performance, "now", () => now);
  assert.equal(sinceActing("/api/operator/overview"), "/api/operator/overview");
  context.mock.method(globalThis, "fetch", async () => Response.json({}));
  await send("/api/operator/bulk", {});
  now += 3_000;
  assert.equal(sinceActing("/api/operator/overview"), "/api/operator/overview?fresh=true");
  now += 3_000;
  assert.equal(sinceActing("/api/operator/overview"), "/api/operator/overview");
});

function neverAnswers(_, { signal }) {
  return new Promise((_answer, fail) => signal.addEventListener("abort", () => fail(signal.reason)));
}
