/** How the system is doing: its agents, the supervisor, what is not sent and what could not be read. */

import { h } from "../../../engine/pages/static/common/dom.js";
import { badge, LOOK } from "../../../engine/pages/static/common/marks.js";
import { clock, now } from "../../../engine/pages/static/common/time.js";
import { pauseAgent, resumeAgent } from "./act.js";
import { at, atLeast, head, many, since } from "./parts.js";

const LONGEST_WITHOUT_SWEEP = 60_000;

const isOpen = ({ openUntil }) => Boolean(openUntil) && Date.parse(openUntil) > now();

/** The agents of which no instance makes calls, each with the time until then. @returns {[string, string][]} */
export function openCircuits({ agents: all }) {
  const names = [...new Set(all.map(({ agent }) => agent))];
  const ofAgent = (name) => all.filter(({ agent }) => agent === name);
  const open = names.filter((name) => ofAgent(name).every(isOpen));
  return open.map((name) => [
    name,
    ofAgent(name)
      .map(({ openUntil }) => openUntil)
      .sort()[0],
  ]);
}

export const isLate = ({ lastSweep }) => !lastSweep || now() - Date.parse(lastSweep.at) > LONGEST_WITHOUT_SWEEP;

/** How many messages could not be read. */
export const poisoned = ({ poison }) => Object.values(poison).reduce((sum, count) => sum + count, 0);

export function agents({ agents: all }) {
  if (!all.length)
    return h("p", { class: "muted" }, "No agent has said anything in the last minute: none has had work.");
  const row = ({ agent, instance, at: reportedAt, running, rate, openUntil }) =>
    h(
      "tr",
      { key: agent + instance },
      h("td", { "data-name": "Agent" }, h("strong", null, agent)),
      h(
        "td",
        { "data-name": "Circuit" },
        isOpen({ openUntil }) ? badge(LOOK.wrong, `open until ${clock(openUntil)}`) : badge(LOOK.well, "closed"),
      ),
      h("td", { "data-name": "Calls" }, running),
      h("td", { "data-name": "Begins" }, rate === null ? "" : `${rate.toFixed(1)} a second`),
      h("td", { "data-name": "Said", class: "muted" }, since(reportedAt), ` by ${instance}`),
    );
  return h(
    "table",
    { class: "rows" },
    head(["Agent", "Circuit", "Calls", "Begins", "Said"]),
    h("tbody", null, all.map(row)),
  );
}

/**
 * Every agent, to be paused or resumed.
 * @param {any} overview @param {import("./main.js").Place} place
 */
export function services({ agentNames, pausedAgents }, place) {
  const row = (name) => {
    const paused = pausedAgents.find(({ agent }) => agent === name);
    return h(
      "li",
      { key: name },
      h("strong", null, name),
      " ",
      paused && [badge(LOOK.plain, `paused until ${clock(paused.until)}`), ` by ${paused.by}: ${paused.because} `],
      paused
        ? h("button", { class: "plain", onClick: () => resumeAgent(name, place) }, "Resume", hidden(name))
        : h("button", { class: "plain", onClick: () => pauseAgent(name, place) }, "Pause", hidden(name)),
    );
  };
  return agentNames.length > 0 && h("ul", { class: "across" }, agentNames.map(row));
}

const hidden = (name) => h("span", { class: "for-readers" }, ` ${name}`);

/** A fact and its name. */
const fact = (name, ...value) => h("div", { key: name }, h("dt", null, name), h("dd", null, value));

export function facts(overview) {
  const { lastSweep, unconfirmedEvents, unsentNotices, waiting } = overview;
  const swept = lastSweep ? [at(lastSweep.at), `, ${many(lastSweep.recovered, "order")} recovered`] : "none yet";
  return h(
    "dl",
    { class: "across" },
    fact("Last sweep", h("span", { class: isLate(overview) ? "wrong" : "" }, swept)),
    fact("Leader", lastSweep?.instance ?? "none"),
    Object.entries(waiting).map(([queue, count]) => fact(`Waiting in ${queue}`, count ?? "unknown: the queue is away")),
    fact("Poison messages", h("a", { href: "#/poison" }, poisoned(overview))),
    fact("Alerts not sent yet", atLeast(unconfirmedEvents)),
    fact("Notices not sent yet", atLeast(unsentNotices)),
  );
}
