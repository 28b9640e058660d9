/** Follows the orders of a bulk action: whether what was mended stays mended. */

import { h, render } from "../../../engine/pages/static/common/dom.js";
import { Poll } from "../../../engine/pages/static/common/poll.js";
import { text } from "../../../engine/pages/static/common/words.js";
import { listOf } from "./parts.js";
import { ask } from "./session.js";
import { waiting } from "./words.js";

const KEPT = "followed";
const EVERY_SECONDS = 10;
const CHANGED = "followed-changed";
const MOST = 2000;

/** @typedef {{done: string, orders: string[], since: string, all?: number}} Followed what was done to which orders, and since when; `all` are how many, where not all are followed */
/** @typedef {{failed: string[], underWay: string[], over: string[], mayBeOpen: boolean}} Became read after the action */

/** Follow these orders, in place of others. @param {Followed} followed */
export function follow(followed) {
  if (!followed.orders.length) return;
  sessionStorage.setItem(
    KEPT,
    JSON.stringify({ ...followed, orders: followed.orders.slice(0, MOST), all: followed.orders.length }),
  );
  dispatchEvent(new Event(CHANGED));
}

/** @returns {Followed | null} */
const kept = () => JSON.parse(sessionStorage.getItem(KEPT) ?? "null");

/** What became of them, in words. @param {Followed} followed @param {Became} became */
export function words({ done, orders, all = orders.length }, { failed, underWay, over, mayBeOpen }) {
  const parts = [
    over.length && text(mayBeOpen ? "console.followed.maybe-over" : "console.followed.over", { count: over.length }),
    underWay.length && text("console.followed.under-way", { count: underWay.length }),
    failed.length && text("console.followed.failed", { count: failed.length }),
  ].filter(Boolean);
  const key = all > orders.length ? "console.followed.first" : "console.followed.all";
  return text(key, { count: orders.length, all, done, became: parts.join(", ") });
}

/** Whether no later answer can differ but by a new failure. @param {Became} became */
export const isFinal = ({ underWay, mayBeOpen }) => !underWay.length && !mayBeOpen;

/** Show on every page what became of them. @param {HTMLElement} node */
export function watchFollowed(node) {
  const poll = new Poll(look, () => {});

  async function look(signal) {
    const followed = kept();
    if (!followed) return { next: null, changed: false };
    const became = await ask("/api/operator/follow", { body: { orders: followed.orders }, signal });
    draw(followed, became);
    return { next: isFinal(became) ? null : EVERY_SECONDS, changed: true };
  }

  /** @param {Followed} followed @param {Became} became */
  function draw(followed, became) {
    render(
      node,
      h(
        "p",
        { role: "status" },
        words(followed, became),
        " ",
        became.failed.length > 0 &&
          h("a", { href: listOf({ state: waiting(), since: followed.since }) }, text("console.followed.show")),
        " ",
        h("button", { class: "plain small", onClick: forget }, text("console.followed.forget")),
      ),
    );
  }

  function forget() {
    sessionStorage.removeItem(KEPT);
    render(node);
  }

  const changed = () => poll.now();
  addEventListener(CHANGED, changed);
  poll.now();
  const stop = () => {
    poll.stop();
    removeEventListener(CHANGED, changed);
    render(node);
  };
  return { stop };
}
