/** What people were sent about alerts, channel by channel, and which channels fail. */

import { h } from "../../../engine/pages/static/common/dom.js";
import { badge, LOOK } from "../../../engine/pages/static/common/marks.js";
import { countdown, full, now } from "../../../engine/pages/static/common/time.js";
import { live } from "./live.js";
import { at, head, many, nothing, numbered, since, text } from "./parts.js";
import { ask } from "./session.js";

const EVERY_SECONDS = 10;

/**
 * @typedef {{id: string, at: string, subject: string, entries: number, outcome: string}} Sent
 * @typedef {{channel: string, waiting: number, lastSentAt: string | null, pausedUntil: string | null, failure: string | null, messages: Sent[]}} Channel
 */

const NAMES = { mail: "Mail (Azure)", smtp: "Mail (SMTP)", teams: "Teams", slack: "Slack" };
/** @type {Record<string, [import("../../../engine/pages/static/common/marks.js").Look, string]>} */
const OUTCOMES = { sent: [LOOK.well, "sent"], refused: [LOOK.wrong, "refused"] };

/** @param {import("./main.js").Place} place @returns {import("./main.js").Open} */
export function notificationsPage(place) {
  return live(place, {
    title: "Notifications",
    shape: "cards",
    heading: ({ channels }) => `${numbered({ count: failing(channels) })}Notifications`,
    load: (signal) => ask("/api/operator/channels", { signal }),
    draw: ({ channels }) => [h("h1", null, "Notifications"), list(channels)],
    every: () => EVERY_SECONDS,
  });
}

/** How many channels do not take messages. @param {Channel[]} channels */
export const failing = (channels) => channels.filter(({ failure }) => failure).length;

/** @param {Channel[]} channels */
export const list = (channels) =>
  channels.length
    ? channels.map(section)
    : nothing(
        "No channel is set up",
        "Alerts are listed on the page Alerts. Settings can send them by mail, to Teams and to Slack.",
      );

/** @param {Channel} channel */
function section(channel) {
  const { channel: name, messages } = channel;
  const id = `channel-${name}`;
  return h(
    "section",
    { "aria-labelledby": id, key: name },
    h("h2", { id }, NAMES[name] ?? name),
    h("p", { class: "facts-line" }, state(channel), h("span", { class: "muted" }, facts(channel))),
    channel.failure && h("p", { class: "note wrong" }, "Last failure: ", text(channel.failure)),
    messages.length ? table(messages) : h("p", { class: "muted" }, "No message yet"),
  );
}

/** Whether the channel works, as shape and word. @param {Channel} channel */
export function state({ failure, lastSentAt, pausedUntil, messages }) {
  if (pausedUntil && Date.parse(pausedUntil) > now()) return badge(LOOK.waits, "paused");
  if (failure) return badge(LOOK.wrong, messages[0]?.outcome === "refused" ? "message refused" : "failing");
  return lastSentAt ? badge(LOOK.well, "working") : badge(LOOK.plain, "not used yet");
}

/** @param {Channel} channel */
const facts = ({ waiting, lastSentAt, pausedUntil }) => [
  waiting ? `${many(waiting, "alert")} waiting` : "no alerts waiting",
  lastSentAt && [", last sent ", since(lastSentAt)],
  pausedUntil &&
    Date.parse(pausedUntil) > now() && [
      ", next attempt ",
      h("time", { datetime: pausedUntil, title: full(pausedUntil), live: () => countdown(pausedUntil) }),
    ],
];

/** @param {Sent[]} messages */
const table = (messages) =>
  h("table", { class: "rows" }, head(["At", "Subject", "Alerts", "Outcome"]), h("tbody", null, messages.map(row)));

/** @param {Sent} message */
const row = ({ id, at: time, subject, entries, outcome }) =>
  h(
    "tr",
    { key: id },
    h("td", { "data-name": "At" }, at(time)),
    h("td", { "data-name": "Subject" }, text(subject)),
    h("td", { "data-name": "Alerts" }, entries),
    h("td", { "data-name": "Outcome" }, badge(...(OUTCOMES[outcome] ?? [LOOK.plain, outcome]))),
  );
