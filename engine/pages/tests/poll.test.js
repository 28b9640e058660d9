/** How often an open page asks. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Poll } from "../static/common/poll.js";

test("a page that is hidden when it is answered asks no more", async (context) => {
  const document = { hidden: true, addEventListener: () => {} };
  Object.defineProperty(globalThis, "document", { value: document, configurable: true });
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const ask = context.mock.fn(async () => ({ next: 1, changed: true }));
  const poll = new Poll(ask, () => {});
  await poll.run();
  context.mock.timers.tick(1000);
  assert.equal(ask.mock.callCount(), 1);
  document.hidden = false;
  await poll.run();
  context.mock.timers.tick(1000);
  assert.equal(ask.mock.callCount(), 3);
});

test("a mistake of the page itself is told as a problem, and it is asked again", async (context) => {
  const document = { hidden: false, addEventListener: () => {} };
  Object.defineProperty(globalThis, "document", { value: document, configurable: true });
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const shown = context.mock.fn();
  const ask = context.mock.fn(async () => {
    throw new TypeError("reading 'Error'");
  });
  await new Poll(ask, shown).run();
  assert.deepEqual(shown.mock.calls[0].arguments[0].faults, ["TypeError: reading 'Error'"]);
  context.mock.timers.tick(3_000);
  assert.equal(ask.mock.callCount(), 2);
});
