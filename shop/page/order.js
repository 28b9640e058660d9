/** The page of one order: its steps move as they are done. */

import { Problem, call } from "../../engine/pages/static/common/api.js";
import { h } from "../../engine/pages/static/common/dom.js";
import { badge, mark } from "../../engine/pages/static/common/marks.js";
import { Poll } from "../../engine/pages/static/common/poll.js";
import { clock, now } from "../../engine/pages/static/common/time.js";
import { keepLine, mine, things, total } from "./store.js";
import { canBeSlow, orderWords, stepWords } from "./words.js";

const LONG_SECONDS = 8;
const PATIENT_SECONDS = 5;
const PATIENT_AFTER = 30;
const LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** @param {import("./main.js").Place} place @param {string} id */
export function orderPage(place, id) {
  const bought = mine().find((purchase) => purchase.id === id);
  /** Since when each step is waited for, as far as this page has seen. @type {Map<string, number>} */
  const began = new Map();
  let order, problem, line;

  function draw() {
    if (!order && problem) return place.show(h("h1", null, "Your order"), notThere());
    if (!order) return place.show(h("h1", null, "Your order"), h("div", { class: "skeleton" }));
    const words = orderWords(order, order.steps.some(isSlow));
    if (words.line !== line) place.say(words.line);
    line = words.line;
    place.show(
      h("h1", null, "Your order"),
      h(
        "section",
        { class: "state" },
        h(
          "p",
          { class: `line ${words.look}` },
          mark(words.look, { width: 24, height: 24 }),
          h("span", null, words.line),
        ),
        h("p", { class: "muted" }, words.next),
      ),
      problem &&
        h(
          "p",
          { class: "note", role: "status" },
          "We cannot reach the shop at the moment, but keep trying. This is the last known state.",
        ),
      order.steps.length > 0 && h("ol", { class: "steps", "aria-label": "Steps" }, order.steps.map(step)),
      h(
        "dl",
        { class: "facts" },
        h("dt", null, "Number"),
        h("dd", null, h("code", null, id)),
        order.placedAt && [h("dt", null, "Placed"), h("dd", null, clock(order.placedAt))],
        bought && [h("dt", null, "For"), h("dd", null, `${total(bought.lines)}, ${things(bought.lines)}`)],
      ),
      h("p", null, h("a", { href: "#/orders" }, "Your orders"), " · ", h("a", { href: "#/" }, "Buy more tea")),
    );
  }

  function step(stage) {
    const { look, words, more } = stepWords(order, stage, isSlow(stage));
    return h(
      "li",
      { key: stage.name, class: look },
      badge(look, words),
      more && h("p", { class: "muted small" }, more),
    );
  }

  const notThere = () =>
    h(
      "div",
      { class: "note wrong", role: "alert" },
      h("p", null, problem.status === 404 ? "There is no order with this number." : problem.message),
      h("p", null, h("a", { href: "#/orders" }, "Your orders")),
    );

  /** Whether a step takes long; the app cannot know for how long this customer has been waiting. */
  const isSlow = ({ name }) => Date.now() - (began.get(name) ?? Infinity) > LONG_SECONDS * 1000;

  function noteWaits(seen) {
    for (const stage of seen.steps) {
      if (!canBeSlow(seen, stage)) began.delete(stage.name);
      else if (!began.has(stage.name)) began.set(stage.name, Date.now() - (order ? 0 : age(id) * 1000));
    }
  }

  async function ask(signal) {
    let answer;
    try {
      answer = await call(`/api/orders/${id}`, { signal });
    } catch (fault) {
      if (!(fault instanceof Problem && fault.status === 404)) throw fault;
      return gone(fault);
    }
    noteWaits(answer.data);
    [order, problem] = [answer.data, null];
    draw();
    if (bought) keepLine(id, line);
    return { next: answer.retryAfter ? pause(answer.retryAfter) : null, changed: true };
  }

  function gone(fault) {
    [order, problem] = [null, fault];
    draw();
    return { next: null, changed: false };
  }

  const pause = (seconds) => (age(id) < PATIENT_AFTER ? seconds : Math.max(seconds, PATIENT_SECONDS));

  draw();
  const poll = new Poll(ask, (fault) => {
    problem = fault;
    draw();
  });
  poll.now();
  return () => poll.stop();
}

/** For how many seconds an order is there: its id begins with the time, as ULIDs do. @param {string} id */
function age(id) {
  const time = id.slice(4, 14);
  return (now() - [...time].reduce((sum, letter) => sum * 32 + LETTERS.indexOf(letter), 0)) / 1000;
}
