/** A page that follows what it shows. If nobody answers it keeps what it has, and says of when that is. */

import { h } from "../common/dom.js";
import { Poll } from "../common/poll.js";
import { clock } from "../common/time.js";
import { learn } from "./words.js";

/**
 * @template Data
 * @typedef {object} Page
 * @property {string} title
 * @property {(signal: AbortSignal) => Promise<Data>} load
 * @property {(data: Data) => any} draw
 * @property {(data: Data) => number | null} every in how many seconds to ask again; null for not at all
 * @property {(data: Data) => any} [matters] what of the data counts as a change; all of it, unless said
 * @property {Data} [first] what was known of it before
 */

/**
 * @template Data
 * @param {import("./main.js").Place} place @param {Page<Data>} page
 * @returns {{stop: () => void, now: () => void, redraw: () => void, failed: (problem: import("../common/api.js").Problem) => void}}
 */
export function live(place, page) {
  let data = page.first;
  let asOf, problem, before;
  let stopped = false;

  async function ask(signal) {
    await learn(signal); // what is asked for may follow from it
    data = await page.load(signal);
    [asOf, problem] = [new Date(), null];
    const now = JSON.stringify((page.matters ?? ((all) => all))(data));
    const changed = now !== before;
    before = now;
    redraw();
    return { next: page.every(data), changed };
  }

  function failed(fault) {
    problem = fault;
    if (fault.status === 401) place.askKey("The operators' key was not accepted.");
    else redraw();
  }

  const away = () =>
    h(
      "div",
      { class: "note wrong", role: "alert", key: "away" },
      h("p", null, h("strong", null, problem.message)),
      problem.faults.map((each) => h("p", null, each)),
      h(
        "p",
        null,
        asOf ? `This is as of ${clock(asOf)}. ` : "",
        h("button", { class: "plain", onClick: () => poll.now() }, "Try again"),
      ),
    );

  function redraw() {
    if (stopped) return;
    place.show(
      data === undefined && h("h1", { key: "title" }, page.title),
      problem && away(),
      data === undefined ? !problem && h("div", { class: "skeleton" }) : page.draw(data),
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
