/** The last hour in pictures. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { duration } from "../../../engine/pages/static/common/time.js";
import { text } from "../../../engine/pages/static/common/words.js";
import { charts } from "../static/charts.js";
import { know } from "../static/words.js";
import { all, giveStorage, textOf } from "../../../engine/pages/tests/support.js";

const milliseconds = (count) => text("page.time.milliseconds", { count });
const seconds = (count) => text("page.time.seconds", { count });
const HOUR = { since: "2026-01-31T07:00:00Z", until: "2026-01-31T08:00:00Z", moreSteps: false };
const minute = (number, processed, failed, steps = {}, undone = 0) => ({
  at: `2026-01-31T07:${String(number).padStart(2, "0")}:00Z`,
  processed,
  failed,
  undone,
  steps,
});
const took = (count, total, longest) => ({ stock: { count, total, longest } });
const bars = (drawn) => all(drawn, "rect").map(({ props: { class: look, x, y, height } }) => [look, x, y, height]);
beforeEach(giveStorage);

test("an hour in which nothing ended says so", () => {
  localStorage.setItem("times-in-utc", "yes");
  assert.equal(textOf(charts({ ...HOUR, minutes: [] })), text("console.charts.none", { until: "31 Jan, 08:00:00" }));
});

test("what was processed stands on the line and what failed hangs from it, both in one measure", () => {
  const drawn = charts({ ...HOUR, minutes: [minute(1, 3, 1)] });
  assert.deepEqual(bars(drawn), [
    ["processed", 1.15, 2, 69],
    ["error", 1.15, 71, 23],
  ]);
  assert.equal(all(drawn, "line")[0].props.y1, 71);
});

test("a minute without any has no bar, and few beside many can still be seen", () => {
  const drawn = charts({ ...HOUR, minutes: [minute(0, 1, 0), minute(59, 9199, 0)] });
  assert.deepEqual(bars(drawn), [
    ["processed", 0.15, 92, 2],
    ["processed", 59.15, 2, 92],
  ]);
});

test("the pictures are told in words", () => {
  const minutes = [minute(0, 1, 0), minute(1, 2, 1, took(2, 300, 2000))];
  const labels = all(charts({ ...HOUR, minutes }), "svg").map(({ props }) => props["aria-label"]);
  const counts = [
    text("console.charts.processed", { count: 3 }),
    text("console.charts.undone", { count: 0 }),
    text("console.charts.needed-you", { count: 1 }),
  ];
  const hour = `${counts.join(", ")}; ${text("console.charts.most", { count: 2 })}`;
  const spark = text("console.charts.latest", { latest: milliseconds(150), longest: seconds("2.0") });
  assert.deepEqual(labels.filter(Boolean), [hour, `stock: ${spark}`]);
});

test("each number leads to the list of its orders, of that hour", () => {
  know({
    orders: {},
    steps: {},
    actions: [],
    lists: { Stuck: { title: "Stuck", mark: "error", parts: [], waitsForOperator: true } },
  });
  const links = all(charts({ ...HOUR, minutes: [minute(0, 3, 1, {}, 2)] }), "a");
  const states = links.map((link) => [textOf(link), new URLSearchParams(link.props.href.split("?")[1]).get("state")]);
  assert.deepEqual(states, [
    [text("console.charts.processed", { count: 3 }), "Processed"],
    [text("console.charts.undone", { count: 2 }), "Undone"],
    [text("console.charts.needed-you", { count: 1 }), "Stuck"],
  ]);
  assert.match(links[0].props.href, /since=2026-01-31T07%3A00%3A00Z&until=2026-01-31T08%3A00%3A00Z/);
});

test("what was undone hangs between the line and what failed", () => {
  const drawn = charts({ ...HOUR, minutes: [minute(1, 2, 1, {}, 1)] });
  assert.deepEqual(bars(drawn), [
    ["processed", 1.15, 2, 46],
    ["undo", 1.15, 48, 23],
    ["error", 1.15, 71, 23],
  ]);
});

test("the line of a step has a tread for each minute, and is broken where no attempt ended", () => {
  const minutes = [
    minute(1, 1, 0, took(2, 224, 112)),
    minute(2, 1, 0, took(1, 56, 56)),
    minute(3, 1, 0),
    minute(4, 1, 0, took(1, 112, 112)),
  ];
  const [line] = all(charts({ ...HOUR, minutes }), "path").filter(({ props }) => props.d.includes("h1"));
  assert.equal(line.props.d, "M1 2h1V16h1M4 2h1");
});

test("the table says of each minute what the pictures show", () => {
  const minutes = [minute(5, 1, 2, took(1, 90_000, 90_000))];
  const cells = all(all(charts({ ...HOUR, minutes }), "tbody"), "td");
  assert.deepEqual(cells.slice(1).map(textOf), [
    "1",
    "0",
    "2",
    text("console.charts.took", { mean: duration(60), longest: duration(60) }),
  ]);
});

test("an axis says how many the tallest bars are, and how long the longest tread is", () => {
  const axes = (minutes) =>
    all(charts({ ...HOUR, minutes }), "svg")
      .filter(({ props }) => props.class === "axis")
      .map((axis) => all(axis, "text").map(textOf));
  assert.deepEqual(axes([minute(0, 12, 3, took(2, 300, 2000))]), [
    ["12", "0", "3"],
    [milliseconds(150), "0"],
  ]);
  assert.deepEqual(axes([minute(0, 12, 0)]), [["12", "0"]]);
});

test("steps that are left out are mentioned", () => {
  const minutes = [minute(1, 3, 1, took(1, 5, 5))];
  const said = text("console.charts.more-steps", { count: 1 });
  assert.ok(textOf(charts({ ...HOUR, minutes, moreSteps: true })).includes(said));
  assert.ok(!textOf(charts({ ...HOUR, minutes })).includes(said));
});
