/** A page that follows what it shows, and says how old that is. If nobody answers it keeps what it has. */

import { h } from "../../../engine/pages/static/common/dom.js";
import { Misunderstood } from "../../../engine/pages/static/common/api.js";
import { Poll } from "../../../engine/pages/static/common/poll.js";
import { clock, duration } from "../../../engine/pages/static/common/time.js";
import { text } from "../../../engine/pages/static/common/words.js";
import { learn } from "./words.js";

const LATE_AFTER = 2;
/** So many times the pause between two looks, but at least some seconds, and what is shown is too old. */
const EARLIEST_LATE = 15;

/**
 * @template Data
 * @typedef {object} Page
 * @property {string} title
 * @property {(signal: AbortSignal) => Promise<Data>} load
 * @property {(data: Data) => any} draw
 * @property {(data: Data) => string} [heading] what the browser calls it; its title, unless said
 * @property {(data: Data) => number | null} every in how many seconds to ask again; null for not at all
 * @property {(data: Data) => any} [matters] what of the data counts as a change; all of it, unless said
 * @property {Data} [first] what was known of it before
 * @property {"cards" | "rows" | "order"} [shape] what stands there until the first answer; rows, unless said
 */

const BLOCKS = { cards: 3, rows: 8, order: 3 };

/** Where the content will be. @param {"cards" | "rows" | "order"} [shape] */
const skeleton = (shape = "rows") =>
  h(
    "div",
    { class: `shape of-${shape}`, "aria-hidden": "true" },
    Array.from({ length: BLOCKS[shape] }, () => h("div", { class: "skeleton" })),
  );

/**
 * @template Data
 * @param {import("./main.js").Place} place @param {Page<Data>} page
 * @returns {{stop: () => void, now: () => void, redraw: () => void, failed: (problem: import("../../../engine/pages/static/common/api.js").Problem) => void}}
 */
export function live(place, page) {
  let data = page.first;
  let asOf, problem, before;
  let stopped = false;

  async function ask(signal) {
    await learn(signal); // what is asked for may follow from it
    const fresh = await page.load(signal);
    show(fresh);
    const now = JSON.stringify((page.matters ?? ((all) => all))(fresh));
    const changed = now !== before;
    before = now;
    return { next: page.every(fresh), changed };
  }

  /** Show what was answered; what the page does not understand is not kept. */
  function show(fresh) {
    const kept = [data, asOf, problem];
    [data, asOf, problem] = [fresh, Date.now(), null];
    try {
      redraw();
    } catch (fault) {
      [data, asOf, problem] = kept;
      throw fault;
    }
  }

  function failed(fault) {
    problem = fault;
    if (fault.status === 401) place.askKey(text("console.live.key-refused"));
    else redraw();
  }

  const away = () =>
    h(
      "div",
      { class: "note wrong", role: "alert", key: "away" },
      h("p", null, h("strong", null, problem.message)),
      problem.faults.map((fault) => h("p", null, fault)),
      h(
        "p",
        null,
        asOf && [text("console.live.as-of", { time: clock(asOf) }), " "],
        h("button", { class: "plain", onClick: () => poll.now() }, text("console.live.again")),
        problem instanceof Misunderstood &&
          h("button", { class: "plain", onClick: () => location.reload() }, text("console.live.reload")),
      ),
    );

  const age = () => (Date.now() - asOf) / 1000;
  const isLate = () => poll.pause !== null && age() > Math.max(LATE_AFTER * poll.pause, EARLIEST_LATE);
  const ofWhen = () => [
    h("p", {
      class: "age",
      key: "age",
      live: () => text("console.live.updated", { duration: duration(Math.max(age(), 0)) }),
    }),
    h("p", {
      class: "note wrong late",
      role: "alert",
      key: "late",
      live: () => (isLate() ? text("console.live.late", { time: clock(asOf) }) : ""),
    }),
  ];

  function redraw() {
    if (stopped) return;
    if (data !== undefined) document.title = page.heading?.(data) ?? page.title;
    place.show(
      data !== undefined && asOf !== undefined && !problem && ofWhen(),
      data === undefined && h("h1", { key: "title" }, page.title),
      problem && away(),
      data === undefined ? !problem && skeleton(page.shape) : page.draw(data),
    );
  }

  queueMicrotask(redraw); // once whoever opened it has it
  const poll = new Poll(ask, failed);
  poll.now();
  const stop = () => {
    stopped = true;
    poll.stop();
  };
  return { stop, now: () => poll.now(), redraw, failed };
}
