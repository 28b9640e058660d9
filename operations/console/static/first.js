/** The first page: whether somebody is needed, for what, and how the system is doing. */

import { Problem } from "../../../engine/pages/static/common/api.js";
import { h } from "../../../engine/pages/static/common/dom.js";
import { badge } from "../../../engine/pages/static/common/marks.js";
import { clock } from "../../../engine/pages/static/common/time.js";
import { take } from "./act.js";
import { charts } from "./charts.js";
import { card, groupsOf, takenOf } from "./causes.js";
import { live } from "./live.js";
import { atLeast, listOf, many, nothing, numbered, outside, since } from "./parts.js";
import { ask, sinceActing } from "./session.js";
import { agents, facts, isLate, openCircuits, poisoned, services } from "./system.js";
import { list, runbook } from "./words.js";

const EVERY_SECONDS = 10;
const FIGURES_EVERY = 60_000;

/** @param {import("./main.js").Place} place @returns {import("./main.js").Open} */
export function firstPage(place) {
  return live(place, {
    title: "Overview",
    shape: "cards",
    heading: ({ overview }) => `${numbered(counted(overview, "waitsForOperator"))}Overview`,
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
  const { causes } = await ask("/api/operator/alerts/causes", { signal }); // first: the overview shares what it reads
  const overview = await ask(sinceActing("/api/operator/overview"), { signal });
  if (Date.now() - readAt >= FIGURES_EVERY) [hour, readAt] = [await figures(signal), Date.now()];
  return { overview, causes, groups: groupsOf(overview, causes), hour };
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
  const counts = Object.keys(openOrders)
    .filter((name) => list(name)[kind])
    .map((name) => openOrders[name]);
  return { count: counts.reduce((sum, part) => sum + part.count, 0), atLeast: counts.some((part) => part.atLeast) };
}

/** What needs a person, in one sentence. @param {any} overview @param {number} [taken] how many orders somebody has taken */
export function sentence(overview, taken = 0) {
  const failed = counted(overview, "waitsForOperator");
  const needs = [
    failed.count &&
      `${atLeast(failed)} ${failed.count === 1 ? "order needs" : "orders need"} you${taken ? `, ${taken} of them taken` : ""}`,
    ...openCircuits(overview).map(([agent, until]) => `${agent}'s circuit is open until ${clock(until)}`),
    isLate(overview) &&
      (overview.lastSweep
        ? `no supervisor has swept since ${clock(overview.lastSweep.at)}`
        : "no supervisor has swept yet"),
    poisoned(overview) && `${many(poisoned(overview), "message")} could not be read`,
  ].filter(Boolean);
  const open = counted(overview, "isUnderWay").count;
  if (!needs.length) return `Nothing needs you${open ? `; ${many(open, "order")} under way` : ""}.`;
  const sentence = needs.join("; ");
  return `${sentence[0].toUpperCase()}${sentence.slice(1)}.`;
}

function draw({ overview, causes, groups, hour }, place) {
  const more = counted(overview, "waitsForOperator").atLeast;
  const others = causes.filter(({ isEnd, unacknowledged }) => !isEnd && unacknowledged.length);
  return [
    h("h1", { id: "sentence" }, sentence(overview, takenOf(groups))),
    poisoned(overview) > 0 &&
      h(
        "p",
        null,
        h("a", { href: "#/poison" }, `Show the ${many(poisoned(overview), "message")} that could not be read`),
      ),
    h(
      "section",
      { "aria-labelledby": "why" },
      h("h2", { id: "why" }, "What needs you"),
      groups.length || others.length
        ? h(
            "ul",
            { class: "cards" },
            groups.map((group, number) => card(group, more, place, number === 0)),
            others.map((finding) => other(finding, place)),
          )
        : nothing("All is well", "Orders that wait for a person appear here, by why they wait."),
    ),
    h(
      "section",
      { "aria-labelledby": "counts" },
      h("h2", { id: "counts" }, "Open orders"),
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
              badge(list(state).mark, state),
            ),
          ),
        ),
      ),
    ),
    h(
      "section",
      { "aria-labelledby": "system" },
      h("h2", { id: "system" }, "The system"),
      agents(overview),
      services(overview, place),
      facts(overview),
    ),
    h(
      "section",
      { "aria-labelledby": "hour" },
      h("h2", { id: "hour" }, "The last hour"),
      hour ? charts(hour) : h("p", { class: "muted" }, "Not known now."),
    ),
  ];
}

const other = (cause, place) =>
  h(
    "li",
    { class: "card", key: cause.type + (cause.cause || cause.reason) },
    h("p", { class: "big" }, many(cause.open, "alert")),
    h(
      "div",
      null,
      h("h3", null, cause.reason),
      h("p", { class: "muted" }, cause.type.split(".").pop(), ", ", since(cause.last)),
    ),
    h(
      "p",
      { class: "buttons" },
      outside(runbook(cause.type), "What to do"),
      h("button", { onClick: () => take(cause, place) }, "I take it"),
      h("a", { class: "button", href: cause.type.endsWith("SubmissionRejected") ? "#/poison" : "#/alerts" }, "Show"),
    ),
  );
