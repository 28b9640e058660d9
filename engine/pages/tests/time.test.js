/** How times are written; where the reader is, clocks are five and a half hours ahead. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { giveStorage } from "./support.js";

process.env.TZ = "Asia/Kolkata"; // before the module makes its formats
const { ago, clock, countdown, duration, full, setServerTime, isUtc, now, offset, sentOf, setUtc, typedOf, zone } =
  await import("../static/common/time.js");

const NOON = "2026-01-31T12:00:00Z";
beforeEach(giveStorage);

test("times are the reader's own until the reader wants UTC, and again after", () => {
  assert.deepEqual([isUtc(), offset(), full(NOON)], [false, "UTC+05:30", "31 Jan 2026, 17:30:00 UTC+05:30"]);
  setUtc(true);
  assert.deepEqual([isUtc(), offset(), full(NOON)], [true, "UTC", "31 Jan 2026, 12:00:00 UTC"]);
  setUtc(false);
  assert.equal(offset(), "UTC+05:30");
});

test("a time that is typed is in the zone in which times are written", () => {
  assert.equal(sentOf("2026-01-31T17:30"), "2026-01-31T12:00:00.000Z");
  setUtc(true);
  assert.equal(sentOf("2026-01-31T12:00"), "2026-01-31T12:00:00.000Z");
});

test("a label names the zone, since the offset depends on the time that is typed", () => {
  assert.match(zone(), /^Asia\/(Kolkata|Calcutta)$/);
  setUtc(true);
  assert.equal(zone(), "UTC");
});

test("a zone behind UTC has a minus", (context) => {
  context.mock.method(Date.prototype, "getTimezoneOffset", () => 210);
  assert.equal(offset(), "UTC−03:30");
});

test("a time of today has no day, and any other has", (context) => {
  context.mock.method(Date, "now", () => Date.parse(NOON));
  setUtc(true);
  assert.equal(clock("2026-01-31T00:00:00Z"), "00:00:00");
  assert.equal(clock("2026-01-30T23:59:59Z"), "30 Jan, 23:59:59");
});

test("a time of another year has the year, which depends on the zone", (context) => {
  context.mock.method(Date, "now", () => Date.parse("2026-12-31T12:00:00Z"));
  assert.equal(clock("2027-07-01T06:00:00Z"), "1 Jul 2027, 11:30:00");
  assert.equal(clock("2025-12-31T12:00:00Z"), "31 Dec 2025, 17:30:00");
  assert.equal(clock("2026-12-31T18:30:00Z"), "1 Jan 2027, 00:00:00");
  setUtc(true);
  assert.equal(clock("2026-12-30T18:30:00Z"), "30 Dec, 18:30:00");
});

test("what is no moment stays as it is, however it is written", () => {
  for (const write of [clock, full, ago, countdown])
    for (const text of ["soon", "", "2026-13-45T99:99:99Z", "0000-00-00T00:00:00Z", "2016-12-31T23:59:60Z"])
      assert.equal(write(text), text);
  assert.equal(clock(NaN), "NaN");
});

test("which day is today depends on the zone", (context) => {
  context.mock.method(Date, "now", () => Date.parse(NOON));
  assert.equal(clock("2026-01-30T18:30:00Z"), "00:00:00");
  assert.equal(clock("2026-01-31T18:30:00Z"), "1 Feb, 00:00:00");
});

for (const [seconds, words] of [
  [0.4, "0 s"],
  [59, "59 s"],
  [60, "1 min"],
  [3599, "59 min"],
  [3600, "1 h"],
  [172_799, "47 h"],
  [172_800, "2 days"],
])
  test(`${seconds} seconds are "${words}"`, () => {
    assert.equal(duration(seconds), words);
  });

test("what was is told by how long ago, and what a clock ahead of ours has written is now", (context) => {
  context.mock.method(Date, "now", () => Date.parse(NOON));
  assert.equal(ago("2026-01-31T11:58:00Z"), "2 min ago");
  assert.equal(ago("2026-01-31T12:00:05Z"), "0 s ago");
});

for (const [time, words] of [
  ["2026-01-31T12:00:00Z", "now"],
  ["2026-01-31T11:59:00Z", "now"],
  ["2026-01-31T12:00:00.100Z", "in 0:01"],
  ["2026-01-31T12:01:05Z", "in 1:05"],
  ["2026-01-31T12:59:59Z", "in 59:59"],
  ["2026-01-31T13:00:00Z", "in 1 h"],
])
  test(`at noon, ${time} comes "${words}"`, (context) => {
    context.mock.method(Date, "now", () => Date.parse(NOON));
    assert.equal(countdown(time), words);
  });

test("what the app says is measured by the app's clock, however wrong this machine's is", (context) => {
  context.mock.method(Date, "now", () => Date.parse(NOON) + 600_000);
  setServerTime("Sat, 31 Jan 2026 12:00:00 GMT");
  assert.equal(ago("2026-01-31T11:59:50Z"), "11 s ago");
  assert.equal(countdown("2026-01-31T12:00:30Z"), "in 0:30");
  setServerTime("Sat, 31 Jan 2026 12:09:59 GMT");
  assert.equal(now(), Date.now());
  setServerTime(null);
  assert.equal(now(), Date.now());
});

test("a moment stands in a field in the zone in which times are written", () => {
  assert.equal(typedOf("2026-01-31T12:00:00Z"), "2026-01-31T17:30");
  setUtc(true);
  assert.equal(typedOf("2026-01-31T12:00:00Z"), "2026-01-31T12:00");
  assert.deepEqual([typedOf(undefined), typedOf("soon")], ["", ""]);
});
