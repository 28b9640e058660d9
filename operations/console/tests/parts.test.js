/** Small things that several pages show. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { at, atLeast, folded, joined, listOf, localized, numbered, outside, since } from "../static/parts.js";
import { all, giveStorage, textOf } from "../../../engine/pages/tests/support.js";

test("a number that may be only the least has a plus", () => {
  assert.equal(atLeast({ count: 2000, atLeast: true }), "2,000+");
  assert.equal(atLeast({ count: 3, atLeast: false }), "3");
});

test("a tab says how many there are, if there are any", () => {
  assert.equal(numbered({ count: 2000, atLeast: true }), "(2,000+) ");
  assert.equal(numbered({ count: 3 }), "(3) ");
  assert.deepEqual([numbered({ count: 0 }), numbered({ count: 0, atLeast: true })], ["", ""]);
});

test("the address of a list names what is asked for, whatever it holds, and nothing else", () => {
  assert.equal(
    listOf({ state: "Error", step: "", reason: "a & b=c", text: null, workflow: undefined }),
    "#/orders?state=Error&reason=a+%26+b%3Dc",
  );
});

test("a text is shown whole, or its beginning with the rest behind it", () => {
  assert.equal(folded("abc", 3), "abc");
  const long = folded("abcd", 3);
  assert.equal(textOf(all(long, "summary")), "abc…");
  assert.equal(textOf(all(long, "span")), "d");
});

test("what there is of several things stands one after the other", () => {
  assert.equal(textOf(joined("; ", "a", null, ["b", "c"], false, "")), "a; bc");
  assert.deepEqual(joined(", ", undefined), []);
});

test("times in the words of the app are shown in the reader's zone", () => {
  giveStorage();
  localStorage.setItem("times-in-utc", "yes");
  const words = localized("circuit open, until 2026-11-23 13:49:15 UTC; then 2 tries");
  const [time] = all(words, "time");
  assert.equal(time.props.datetime, "2026-11-23T13:49:15Z");
  assert.match(textOf(words), /^circuit open, until (23 Nov, )?13:49:15; then 2 tries$/);
  assert.equal(textOf(localized("no time, such as 13:49 UTC")), "no time, such as 13:49 UTC");
});

for (const time of ["2026-13-45 99:99:99", "0000-00-00 00:00:00", "2016-12-31 23:59:60", "2026-02-30 12:00:00"])
  test(`what is no time stays as it is, such as ${time}`, () => {
    giveStorage();
    assert.equal(textOf(localized(`bank away since ${time} UTC; call`)), `bank away since ${time} UTC; call`);
  });

test("a field that should be a time and is not is shown as it is", () => {
  giveStorage();
  assert.deepEqual([textOf(at("soon")), textOf(since("soon")), at("soon").props.title], ["soon", "soon", "soon"]);
});

test("a link that leads nowhere is not shown", () => {
  assert.equal(outside(undefined, "Log"), undefined);
  const link = outside("https://logs.example.com/", "Log");
  assert.deepEqual([link.props.href, link.props.rel, textOf(link)], ["https://logs.example.com/", "noopener", "Log"]);
});
