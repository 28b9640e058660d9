/** The last hour in pictures: what ended in each minute, and how long the steps took; a table says the same. */

import { h } from "../../../engine/pages/static/common/dom.js";
import { badge, LOOK } from "../../../engine/pages/static/common/marks.js";
import { clock, duration } from "../../../engine/pages/static/common/time.js";
import { text } from "../../../engine/pages/static/common/words.js";
import { at, cell, head, listOf } from "./parts.js";
import { waiting } from "./words.js";

const MINUTE = 60_000;
const HEIGHT = 96;
const SPARK = 32;
const SMALLEST = 2;

/** @typedef {{count: number, total: number, longest: number}} Took */
/** @typedef {{at: string, processed: number, failed: number, undone: number, steps: Record<string, Took>}} Minute */

const mean = (/** @type {Took} */ { total, count }) => total / count;
const sum = (/** @type {number[]} */ numbers) => numbers.reduce((all, number) => all + number, 0);

/** @param {number} ms */
function inTime(ms) {
  if (ms < 1000) return text("page.time.milliseconds", { count: Math.round(ms) });
  return ms < MINUTE ? text("page.time.seconds", { count: (ms / 1000).toFixed(1) }) : duration(ms / 1000);
}

/** @param {{since: string, until: string, minutes: Minute[], moreSteps: boolean}} hour */
export function charts({ since, until, minutes, moreSteps }) {
  if (!minutes.length) return h("p", { class: "muted" }, text("console.charts.none", { until: clock(until) }));
  const names = [...new Set(minutes.flatMap(({ steps }) => Object.keys(steps)))].sort();
  const place = (/** @type {Minute} */ { at: time }) => (Date.parse(time) - Date.parse(since)) / MINUTE;
  const ends = h("figcaption", { class: "muted small" }, h("span", null, clock(since)), h("span", null, clock(until)));
  return [
    h("figure", { class: "hour" }, throughput(minutes, place, { since, until }), ends),
    names.length > 0 && h("h3", null, text("console.charts.durations")),
    names.length > 0 && h("figure", { class: "hour" }, sparklines(names, minutes, place), ends),
    moreSteps && h("p", { class: "muted" }, text("console.charts.more-steps", { count: names.length })),
    h("details", null, h("summary", null, text("console.charts.as-table")), table(names, minutes)),
  ];
}

/**
 * A picture beside its axis.
 * @param {number} height @param {[number, string | number][]} marks what is written at which height @param {any} drawn
 */
const plot = (height, marks, drawn) =>
  h(
    "div",
    { class: "plot" },
    h(
      "svg",
      { class: "axis", width: 48, height, "aria-hidden": "true" },
      marks.map(([y, label]) => h("text", { x: 40, y: Math.min(Math.max(y + 4, 10), height) }, label)),
    ),
    drawn,
  );

/** A minute is one wide, at any width of the page. */
const picture = (height, label, ...shapes) =>
  h(
    "svg",
    {
      width: "100%",
      height,
      viewBox: `0 0 60 ${height}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": label,
    },
    shapes,
  );

/** What was processed stands above the line; what was undone hangs below it, and below that what failed. */
function throughput(minutes, place, hour) {
  const failed = minutes.map((minute) => minute.failed);
  const undone = minutes.map((minute) => minute.undone);
  const above = Math.max(...minutes.map((minute) => minute.processed));
  const below = Math.max(...minutes.map((_, number) => failed[number] + undone[number]));
  const unit = (HEIGHT - 2 * SMALLEST) / Math.max(above + below, 1);
  const line = SMALLEST + above * unit;
  const tall = (count) => (count > 0 ? Math.max(count * unit, SMALLEST) : 0);
  const bar = (look, minute, count, y) =>
    count > 0 && h("rect", { class: look, x: place(minute) + 0.15, width: 0.7, y, height: tall(count) });
  const series = [
    {
      look: LOOK.well,
      words: text("console.charts.processed", { count: sum(minutes.map((minute) => minute.processed)) }),
      state: "Processed",
    },
    { look: LOOK.undone, words: text("console.charts.undone", { count: sum(undone) }), state: "Undone" },
    { look: LOOK.wrong, words: text("console.charts.needed-you", { count: sum(failed) }), state: waiting() },
  ];
  const most = text("console.charts.most", { count: above });
  return [
    h(
      "p",
      { class: "legend" },
      series.map(({ look, words, state }) => h("a", { href: listOf({ state, ...hour }) }, badge(look, words))),
      most,
    ),
    plot(
      HEIGHT,
      axis(above, below, line),
      picture(
        HEIGHT,
        `${series.map(({ words }) => words).join(", ")}; ${most}`,
        minutes.map((minute, number) => [
          bar(LOOK.well, minute, minute.processed, line - tall(minute.processed)),
          bar(LOOK.undone, minute, undone[number], line),
          bar(LOOK.wrong, minute, failed[number], line + tall(undone[number])),
        ]),
        h("line", { class: "track", x1: 0, x2: 60, y1: line, y2: line }),
      ),
    ),
  ];
}

/** How many the tallest bars are, above the line and below it. @returns {[number, number][]} */
function axis(above, below, line) {
  /** @type {[number, number][]} */
  const marks = [
    [SMALLEST, above],
    [line, 0],
    [HEIGHT, below],
  ];
  return marks.filter(([_, count], place) => count > 0 || place === 1);
}

const sparklines = (names, minutes, place) =>
  names.map((name) => {
    const found = minutes.filter(({ steps }) => name in steps);
    const means = found.map(({ steps }) => mean(steps[name]));
    const longest = Math.max(...found.map(({ steps }) => steps[name].longest));
    const words = text("console.charts.latest", { latest: inTime(means[means.length - 1]), longest: inTime(longest) });
    const d = path(found.map(place), means);
    return h(
      "div",
      { class: "spark", key: name },
      h("strong", null, name),
      plot(
        SPARK,
        [
          [SMALLEST, inTime(Math.max(...means))],
          [SPARK, 0],
        ],
        picture(SPARK, `${name}: ${words}`, h("path", { d })),
      ),
      h("span", { class: "muted" }, words),
    );
  });

/** A line with a tread for each minute; where no attempt ended it is broken. */
function path(places, values) {
  const unit = (SPARK - 2 * SMALLEST) / Math.max(...values, 1);
  const treads = values.map((value, number) => {
    const height = SPARK - SMALLEST - value * unit;
    const follows = number > 0 && places[number] - places[number - 1] === 1;
    return follows ? `V${height}h1` : `M${places[number]} ${height}h1`;
  });
  return treads.join("");
}

const table = (names, minutes) =>
  h(
    "div",
    { class: "wide", tabindex: 0, role: "region", "aria-label": text("console.charts.table") },
    h(
      "table",
      { class: "rows" },
      head(["minute", "processed", "undone", "needed-you"], names),
      h(
        "tbody",
        null,
        minutes.map((minute) =>
          h(
            "tr",
            { key: minute.at },
            cell("minute", null, at(minute.at)),
            cell("processed", null, minute.processed),
            cell("undone", null, minute.undone),
            cell("needed-you", null, minute.failed),
            names.map((name) => h("td", { "data-name": name }, took(minute.steps[name]))),
          ),
        ),
      ),
    ),
  );

const took = (step) => step && text("console.charts.took", { mean: inTime(mean(step)), longest: inTime(step.longest) });
