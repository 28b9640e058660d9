/** What people were sent about alerts, channel by channel, and which channels fail. */

import { h } from "../../../engine/pages/static/common/dom.js";
import { badge, LOOK } from "../../../engine/pages/static/common/marks.js";
import { countdown, full, now } from "../../../engine/pages/static/common/time.js";
import { named, rich, text } from "../../../engine/pages/static/common/words.js";
import { live } from "./live.js";
import { at, cell, folded, head, joined, nothing, numbered, since } from "./parts.js";
import { ask } from "./session.js";

const EVERY_SECONDS = 10;

/**
 * @typedef {{id: string, at: string, subject: string, entries: number, outcome: string}} Sent
 * @typedef {{channel: string, waiting: number, lastSentAt: string | null, pausedUntil: string | null, failure: string | null, messages: Sent[]}} Channel
 */

/** How a message looks that came to this. @type {Record<string, import("../../../engine/pages/static/common/marks.js").Look>} */
const OUTCOMES = { sent: LOOK.well, refused: LOOK.wrong };

/** @param {import("./main.js").Place} place @returns {import("./main.js").Open} */
export function notificationsPage(place) {
  return live(place, {
    title: text("console.notifications.title"),
    shape: "cards",
    heading: ({ channels }) => `${numbered({ count: failing(channels) })}${text("console.notifications.title")}`,
    load: (signal) => ask("/api/operator/channels", { signal }),
    draw: ({ channels }) => [h("h1", null, text("console.notifications.title")), list(channels)],
    every: () => EVERY_SECONDS,
  });
}

/** How many channels do not take messages. @param {Channel[]} channels */
export const failing = (channels) => channels.filter(({ failure }) => failure).length;

/** @param {Channel[]} channels */
export const list = (channels) =>
  channels.length
    ? channels.map(section)
    : nothing(text("console.notifications.none"), text("console.notifications.none-hint"));

/** @param {Channel} channel */
function section(channel) {
  const { channel: name, messages } = channel;
  const id = `channel-${name}`;
  return h(
    "section",
    { "aria-labelledby": id, key: name },
    h("h2", { id }, named("console.notifications.channel", name)),
    h("p", { class: "facts-line" }, state(channel), h("span", { class: "muted" }, facts(channel))),
    channel.failure &&
      h("p", { class: "note wrong" }, rich("console.notifications.failure", { failure: folded(channel.failure) })),
    messages.length ? table(messages) : h("p", { class: "muted" }, text("console.notifications.no-message")),
  );
}

/** Whether the channel works, as shape and word. @param {Channel} channel */
export function state({ failure, lastSentAt, pausedUntil, messages }) {
  if (pausedUntil && Date.parse(pausedUntil) > now()) return badge(LOOK.waits, text("console.notifications.paused"));
  if (failure)
    return badge(
      LOOK.wrong,
      text(
        messages[0]?.outcome === "refused" ? "console.notifications.message-refused" : "console.notifications.failing",
      ),
    );
  return lastSentAt
    ? badge(LOOK.well, text("console.notifications.working"))
    : badge(LOOK.plain, text("console.notifications.unused"));
}

/** @param {Channel} channel */
const facts = ({ waiting, lastSentAt, pausedUntil }) =>
  joined(
    ", ",
    waiting ? text("console.notifications.waiting", { count: waiting }) : text("console.notifications.none-waiting"),
    lastSentAt && rich("console.notifications.last-sent", { ago: since(lastSentAt) }),
    pausedUntil && Date.parse(pausedUntil) > now() && rich("console.notifications.next", { time: until(pausedUntil) }),
  );

/** How long it still takes, with the time on hover. @param {string} time */
const until = (time) => h("time", { datetime: time, title: full(time), live: () => countdown(time) });

/** @param {Sent[]} messages */
const table = (messages) =>
  h("table", { class: "rows" }, head(["at", "subject", "alerts", "outcome"]), h("tbody", null, messages.map(row)));

/** @param {Sent} message */
const row = ({ id, at: time, subject, entries, outcome }) =>
  h(
    "tr",
    { key: id },
    cell("at", null, at(time)),
    cell("subject", null, folded(subject)),
    cell("alerts", null, entries),
    cell("outcome", null, badge(OUTCOMES[outcome] ?? LOOK.plain, named("console.notifications.outcome", outcome))),
  );
