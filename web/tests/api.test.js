/** What a call to the app's API asks of the browser. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { call } from "../static/common/api.js";

test("nothing of what was answered is left on the disk", async (context) => {
  const asked = context.mock.method(globalThis, "fetch", async () => Response.json({}));
  await call("/api/operator/orders");
  assert.equal(asked.mock.calls[0].arguments[1].cache, "no-store");
});
