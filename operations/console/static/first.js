/** The first page: whether somebody is needed, for what, and how the system is doing. */

import { Problem } from "../../../engine/pages/static/common/api.js";
import { h } from "../../../engine/pages/static/common/dom.js";
import { badge } from "../../../engine/pages/static/common/marks.js";
import { clock } from "../../../engine/pages/static/common/time.js";
import { LOCALE, text } from "../../../engine/pages/static/common/words.js";
import { take } from "./act.js";
import { charts } from "./charts.js";
import { card, groupsOf, takenOf } from "./causes.js";
import { live } from "./live.js";
import { atLeast, joined, listOf, nothing, numbered, outside, since } from "./parts.js";
import { ask, sinceActing } from "./session.js";
import { agents, facts, isLate, openCircuits, poisoned, services, together } from "./system.js";
import { alertName, list, runbook } from "./words.js";

const EVERY_SECONDS = 10;
const FIGURES_EVERY = 60_000;

/** @param {import("./main.js").Place} place @returns {import("./main.js").Open} */
export function firstPage(place) {
  return live(place, {
    title: text("console.first.title"),
    shape: "cards",
    heading: ({ overview }) => `${numbered(counted(overview, "waitsForOperator"))}${text("console.first.title")}`,
    load,
    draw: (data) => draw(data, place),
    every: () => EVERY_SECONDS,
    matters,
  });
}

/** What the last hour was when it was asked for, also for the next visit to the page. */
let hour;
let readAt = 0;

async function load(signal) {
  // First, since the overview shares what it reads.
  const { causes, continuation: older } = await ask("/api/operator/alerts/causes", { signal });
  const overview = await ask(sinceActing("/api/operator/overview"), { signal });
  if (Date.now() - readAt >= FIGURES_EVERY) [hour, readAt] = [await figures(signal), Date.now()];
  return { overview, causes, groups: groupsOf(overview, causes, older), hour, older };
}

/** The last hour is for looking at: without it, the page shows the rest. @param {AbortSignal} signal */
async function figures(signal) {
  try {
    return await ask("/api/operator/figures", { signal });
  } catch (fault) {
    if (!(fault instanceof Problem) || fault.status === 401) throw fault;
    return hour;
  }
}

/** All but the times that pass by themselves. */
const matters = ({ overview, causes, groups }) => [
  overview.openOrders,
  overview.poison,
  overview.unconfirmedEvents,
  openCircuits(overview).map(([agent]) => agent),
  overview.pausedAgents,
  causes,
  groups,
];

/** How many orders are in the lists of this kind. @param {any} overview @param {"waitsForOperator" | "isUnderWay"} kind */
function counted({ openOrders }, kind) {
  const names = Object.keys(openOrders).filter((name) => list(name)[kind]);
  return together(names.map((name) => openOrders[name]));
}

/** What needs a person, in one sentence. @param {any} overview @param {number} [taken] how many orders somebody has taken */
export function sentence(overview, taken = 0) {
  const failed = counted(overview, "waitsForOperator");
  const unreadable = poisoned(overview);
  const needs = [
    failed.count &&
      text(taken ? "console.first.failed-taken" : "console.first.failed", {
        count: failed.count,
        orders: atLeast(failed),
        taken,
      }),
    ...openCircuits(overview).map(([agent, until]) =>
      text("console.first.circuit-open", { agent, until: clock(until) }),
    ),
    isLate(overview) &&
      (overview.lastSweep
        ? text("console.first.late", { since: clock(overview.lastSweep.at) })
        : text("console.first.never-swept")),
    unreadable.count && text("console.first.unreadable", { count: unreadable.count, messages: atLeast(unreadable) }),
  ].filter(Boolean);
  const open = counted(overview, "isUnderWay").count;
  if (!needs.length) return open ? text("console.first.under-way", { count: open }) : text("console.first.well");
  const sentence = needs.join("; ");
  return `${sentence[0].toLocaleUpperCase(LOCALE)}${sentence.slice(1)}.`;
}

function draw({ overview, causes, groups, hour, older }, place) {
  const more = counted(overview, "waitsForOperator").atLeast;
  const unreadable = poisoned(overview);
  const others = causes.filter(({ isEnd, unacknowledged }) => !isEnd && unacknowledged.length);
  return [
    h("h1", { id: "sentence" }, sentence(overview, takenOf(groups))),
    unreadable.count > 0 &&
      h(
        "p",
        null,
        h(
          "a",
          { href: "#/poison" },
          text("console.first.show-unreadable", { count: unreadable.count, messages: atLeast(unreadable) }),
        ),
      ),
    h(
      "section",
      { "aria-labelledby": "why" },
      h("h2", { id: "why" }, text("console.first.needs")),
      groups.length || others.length
        ? h(
            "ul",
            { class: "cards" },
            groups.map((group, number) => card(group, more, place, number === 0)),
            others.map((finding) => other({ ...finding, older }, place)),
          )
        : nothing(text("console.first.none"), text("console.first.none-hint")),
      overview.moreCauses && h("p", { class: "muted" }, text("console.first.more-causes")),
    ),
    h(
      "section",
      { "aria-labelledby": "counts" },
      h("h2", { id: "counts" }, text("console.first.open")),
      h(
        "ul",
        { class: "counts" },
        Object.keys(overview.openOrders).map((state) =>
          h(
            "li",
            { key: state },
            h(
              "a",
              { href: listOf({ state }) },
              h("span", { class: "big" }, atLeast(overview.openOrders[state])),
              badge(list(state).mark, list(state).title),
            ),
          ),
        ),
      ),
    ),
    h(
      "section",
      { "aria-labelledby": "system" },
      h("h2", { id: "system" }, text("console.first.system")),
      agents(overview),
      services(overview, place),
      facts(overview),
    ),
    h(
      "section",
      { "aria-labelledby": "hour" },
      h("h2", { id: "hour" }, text("console.first.hour")),
      hour ? charts(hour) : h("p", { class: "muted" }, text("console.first.hour-unknown")),
    ),
  ];
}

const other = (cause, place) =>
  h(
    "li",
    { class: "card", key: cause.type + (cause.cause || cause.reason) },
    h("p", { class: "big" }, text("console.parts.alerts", { count: cause.open })),
    h(
      "div",
      null,
      h("h3", null, cause.reason),
      h("p", { class: "muted" }, joined(", ", alertName(cause.type), since(cause.last))),
    ),
    h(
      "p",
      { class: "buttons" },
      outside(runbook(cause.type), text("console.parts.what-to-do")),
      h("button", { onClick: () => take(cause, place) }, text("console.parts.take")),
      h(
        "a",
        { class: "button", href: cause.type.endsWith("SubmissionRejected") ? "#/poison" : "#/alerts" },
        text("console.first.show"),
      ),
    ),
  );
