/** The first page: whether somebody is needed, for what, and how the system is doing. */

import { h } from "../common/dom.js";
import { badge } from "../common/marks.js";
import { clock } from "../common/time.js";
import { take } from "./act.js";
import { live } from "./live.js";
import { at, atLeast, listOf, many, nothing, since } from "./parts.js";
import { ask } from "./session.js";

const EVERY_SECONDS = 10;
const LISTED = 200;
const LONGEST_WITHOUT_SWEEP = 60_000;
const LOOKS = /** @type {const} */ ({ Pending: "pending", Processing: "processing", Error: "error" });

/** @param {import("./main.js").Place} place @returns {import("./main.js").Open} */
export function firstPage(place) {
  return live(place, { title: "Overview", load, draw: (data) => draw(data, place), every: () => EVERY_SECONDS, matters });
}

async function load(signal) {
  const overview = await ask("/api/operator/overview", { signal });
  const { causes } = await ask("/api/operator/alerts/causes", { signal });
  const orders = overview.openOrders.Error.count ? (await ask(`/api/operator/orders?state=Error&limit=${LISTED}`, { signal })).orders : [];
  return { overview, causes, groups: grouped(orders) };
}

/** All but the times that pass by themselves. */
const matters = ({ overview, causes, groups }) => [overview.openOrders, overview.poison, overview.unconfirmedEvents, openCircuits(overview).map(({ agent }) => agent), causes, groups];

/** The orders that wait for an operator, by why. */
export function grouped(orders) {
  const groups = new Map();
  for (const { failedSteps, reason, updatedAt } of orders) {
    const [step] = failedSteps;
    const key = JSON.stringify([step, reason]);
    const group = groups.get(key) ?? { key, step, reason, count: 0, first: updatedAt };
    groups.set(key, { ...group, count: group.count + 1 });
  }
  return [...groups.values()].sort((one, other) => other.count - one.count);
}

const openCircuits = ({ agents }) => agents.filter(({ openUntil }) => openUntil && Date.parse(openUntil) > Date.now());
const isLate = ({ lastSweep }) => !lastSweep || Date.now() - Date.parse(lastSweep.at) > LONGEST_WITHOUT_SWEEP;
const poisoned = ({ poison }) => Object.values(poison).reduce((sum, each) => sum + each, 0);

/** What needs a person, in one sentence. */
export function sentence(overview) {
  const { Error: failed, Pending, Processing } = overview.openOrders;
  const circuits = new Map(openCircuits(overview).map(({ agent, openUntil }) => [agent, openUntil]));
  const needs = [
    failed.count && `${atLeast(failed)} ${failed.count === 1 ? "order needs" : "orders need"} you`,
    ...[...circuits].map(([agent, until]) => `${agent}'s circuit is open until ${clock(until)}`),
    isLate(overview) && (overview.lastSweep ? `no supervisor has swept since ${clock(overview.lastSweep.at)}` : "no supervisor has swept yet"),
    poisoned(overview) && `${many(poisoned(overview), "message")} could not be read`,
  ].filter(Boolean);
  const open = Pending.count + Processing.count;
  if (!needs.length) return `Nothing needs you${open ? `; ${many(open, "order")} under way` : ""}.`;
  const said = needs.join("; ");
  return `${said[0].toUpperCase()}${said.slice(1)}.`;
}

function draw({ overview, causes, groups }, place) {
  const others = causes.filter(({ type, unacknowledged }) => !type.includes(".Order") && unacknowledged.length);
  return [
    h("h1", { id: "sentence" }, sentence(overview)),
    h("section", { "aria-labelledby": "why" },
      h("h2", { id: "why" }, "What needs you"),
      groups.length || others.length
        ? h("ul", { class: "cards" }, groups.map((each) => group(each, causes, place)), others.map((each) => other(each, place)))
        : nothing("All is well", "Orders that wait for a person appear here, by why they wait.")),
    h("section", { "aria-labelledby": "counts" },
      h("h2", { id: "counts" }, "Open orders"),
      h("ul", { class: "counts" }, Object.entries(LOOKS).map(([state, look]) =>
        h("li", { key: state }, h("a", { href: listOf({ state }) }, h("span", { class: "big" }, atLeast(overview.openOrders[state])), badge(look, state)))))),
    h("section", { "aria-labelledby": "system" },
      h("h2", { id: "system" }, "The system"),
      agents(overview), facts(overview)),
  ];
}

function group({ key, step, reason, count, first }, causes, place) {
  const known = causes.find((each) => each.step === (step ?? "") && each.reason === (reason ?? ""));
  return h("li", { class: "card", key },
    h("p", { class: "big" }, many(count, "order")),
    h("div", null,
      h("h3", null, reason ?? "No reason is known"),
      h("p", { class: "muted" }, step && `step ${step}, `, "the first ", since(first))),
    h("p", { class: "buttons" },
      known?.unacknowledged.length > 0 && h("button", { onClick: () => take(known, place) }, "I take it"),
      h("a", { class: "button main", href: listOf({ state: "Error", step, reason }) }, "Show orders")));
}

const other = (cause, place) =>
  h("li", { class: "card", key: cause.type + cause.reason },
    h("p", { class: "big" }, many(cause.count, "alert")),
    h("div", null, h("h3", null, cause.reason), h("p", { class: "muted" }, cause.type.split(".").pop(), ", ", since(cause.last))),
    h("p", { class: "buttons" }, h("button", { onClick: () => take(cause, place) }, "I take it")));

function agents({ agents: all }) {
  if (!all.length) return h("p", { class: "muted" }, "No agent has said anything in the last minute: none has had work.");
  const row = ({ agent, instance, at: said, running, waited, openUntil }) =>
    h("tr", { key: agent + instance },
      h("td", { "data-name": "Agent" }, h("strong", null, agent)),
      h("td", { "data-name": "Circuit" }, openUntil && Date.parse(openUntil) > Date.now() ? badge("error", `open until ${clock(openUntil)}`) : badge("processed", "closed")),
      h("td", { "data-name": "Calls" }, running),
      h("td", { "data-name": "Requests wait" }, `${Math.round(waited * 100)} % of their time`),
      h("td", { "data-name": "Said", class: "muted" }, since(said), ` by ${instance}`));
  return h("table", { class: "rows" },
    h("thead", null, h("tr", null, ["Agent", "Circuit", "Calls", "Requests wait", "Said"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", null, all.map(row)));
}

function facts(overview) {
  const { lastSweep, unconfirmedEvents, unsentNotices } = overview;
  return h("dl", { class: "facts" },
    h("dt", null, "Last sweep"), h("dd", { class: isLate(overview) ? "error" : "" }, lastSweep ? [at(lastSweep.at), `, ${many(lastSweep.recovered, "order")} recovered`] : "none yet"),
    h("dt", null, "Leader"), h("dd", null, lastSweep?.instance ?? "none"),
    h("dt", null, "Poison messages"), h("dd", null, h("a", { href: "#/poison" }, poisoned(overview))),
    h("dt", null, "Alerts not sent yet"), h("dd", null, atLeast(unconfirmedEvents)),
    h("dt", null, "Notices not sent yet"), h("dd", null, atLeast(unsentNotices)));
}
