/** Times beside a change of the clocks (bugs 1), in the zones and at the times of a table. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { beforeEach, test } from "node:test";

import { full, offset, sentOf, typedOf } from "../static/common/time.js";
import { giveStorage } from "./support.js";

const { offsets, fields, typed } = JSON.parse(
  readFileSync(new URL("../../../tests/data/inputs/page_times.json", import.meta.url), "utf8"),
);
beforeEach(giveStorage);

for (const [zone, times] of Object.entries(offsets))
  test(`in ${zone} an offset is that of the time beside it (bugs 1)`, () => {
    process.env.TZ = zone;
    for (const [time, expected] of Object.entries(times)) {
      assert.equal(offset(time), expected);
      assert.ok(full(time).endsWith(` ${expected}`), full(time));
    }
  });

for (const [zone, times] of Object.entries(fields))
  test(`in ${zone} a field that was not touched sends its value unchanged (bugs 1)`, () => {
    process.env.TZ = zone;
    for (const time of times) assert.equal(sentOf(typedOf(time), time), time);
  });

test("a time that was changed is sent as it is typed", () => {
  process.env.TZ = "Europe/Berlin";
  assert.equal(sentOf("2026-07-01T10:01", "2026-07-01T08:00:30Z"), "2026-07-01T08:01:00.000Z");
});

for (const [zone, times] of Object.entries(typed))
  test(`in ${zone} a time that the clocks skip is refused, and not taken for another one`, () => {
    process.env.TZ = zone;
    for (const [time, sent] of Object.entries(times))
      if (sent) assert.equal(sentOf(time), sent);
      else assert.throws(() => sentOf(time), RangeError, time);
  });
