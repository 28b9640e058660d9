/** How the system is doing: its agents, the supervisor, what is not sent and what could not be read. */

import { h } from "../../../engine/pages/static/common/dom.js";
import { badge, LOOK } from "../../../engine/pages/static/common/marks.js";
import { clock, now } from "../../../engine/pages/static/common/time.js";
import { rich, text } from "../../../engine/pages/static/common/words.js";
import { pauseAgent, resumeAgent } from "./act.js";
import { at, atLeast, cell, head, joined, since } from "./parts.js";

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

/** Several counts as one. @param {{count: number, atLeast: boolean}[]} counts */
export const together = (counts) => ({
  count: counts.reduce((sum, part) => sum + part.count, 0),
  atLeast: counts.some((part) => part.atLeast),
});

/** How many messages could not be read. */
export const poisoned = ({ poison }) => together(Object.values(poison));

function circuit({ openUntil, unresponsiveSince }) {
  if (unresponsiveSince)
    return badge(LOOK.wrong, text("console.system.silent-since", { since: clock(unresponsiveSince) }));
  if (isOpen({ openUntil })) return badge(LOOK.wrong, text("console.system.open-until", { until: clock(openUntil) }));
  return badge(LOOK.well, text("console.system.closed"));
}

export function agents({ agents: all }) {
  if (!all.length) return h("p", { class: "muted" }, text("console.system.no-agent"));
  const row = ({ agent, instance, at: reportedAt, running, rate, openUntil, unresponsiveSince }) =>
    h(
      "tr",
      { key: agent + instance },
      cell("agent", null, h("strong", null, agent)),
      cell("circuit", null, circuit({ openUntil, unresponsiveSince })),
      cell("calls", null, running),
      cell("rate", null, rate === null ? "" : text("console.system.rate", { rate: rate.toFixed(1) })),
      cell("reported", { class: "muted" }, rich("console.system.reported", { ago: since(reportedAt), instance })),
    );
  return h(
    "table",
    { class: "rows" },
    head(["agent", "circuit", "calls", "rate", "reported"]),
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
      paused && [
        badge(LOOK.plain, text("console.system.paused-until", { until: clock(paused.until) })),
        " ",
        text("console.system.paused-by", { operator: paused.by, reason: paused.because }),
        " ",
      ],
      paused
        ? h(
            "button",
            { class: "plain", onClick: () => resumeAgent(name, place) },
            text("console.system.resume"),
            hidden(name),
          )
        : h(
            "button",
            { class: "plain", onClick: () => pauseAgent(name, place) },
            text("console.system.pause"),
            hidden(name),
          ),
    );
  };
  return agentNames.length > 0 && h("ul", { class: "across" }, agentNames.map(row));
}

const hidden = (name) => h("span", { class: "for-readers" }, ` ${name}`);

/** A fact and its name. */
const fact = (name, ...value) => h("div", { key: name }, h("dt", null, name), h("dd", null, value));

export function facts(overview) {
  const { lastSweep, unconfirmedEvents, unsentNotices, waiting } = overview;
  const swept = lastSweep
    ? joined(", ", at(lastSweep.at), text("console.system.recovered", { count: lastSweep.recovered }))
    : text("console.system.none-yet");
  return h(
    "dl",
    { class: "across" },
    fact(text("console.system.last-sweep"), h("span", { class: isLate(overview) ? "wrong" : "" }, swept)),
    fact(text("console.system.leader"), lastSweep?.instance ?? text("console.system.none")),
    Object.entries(waiting).map(([queue, count]) =>
      fact(text("console.system.waiting", { queue }), count ?? text("console.system.queue-away")),
    ),
    fact(text("console.poison.title"), h("a", { href: "#/poison" }, atLeast(poisoned(overview)))),
    fact(text("console.system.unsent-alerts"), atLeast(unconfirmedEvents)),
    fact(text("console.system.unsent-notices"), atLeast(unsentNotices)),
  );
}
