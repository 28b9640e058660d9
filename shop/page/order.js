/** The page of one order: its steps move as they are done. */

import { Problem, call } from "../../web/static/common/api.js";
import { h } from "../../web/static/common/dom.js";
import { badge, mark } from "../../web/static/common/marks.js";
import { Poll } from "../../web/static/common/poll.js";
import { clock } from "../../web/static/common/time.js";
import { heard, mine, things, total } from "./store.js";
import { hasEnded, orderWords, stepWords } from "./words.js";

const FRESH_SECONDS = 60;
const LONG_SECONDS = 8;
const SOON_SECONDS = 1;
const OPEN_SECONDS = 2;
const PATIENT_SECONDS = 5;
const PATIENT_AFTER = 30;
const LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ACCEPTED = { processState: "Accepted", steps: [] };

/** @param {import("./main.js").Place} place @param {string} id */
export function orderPage(place, id) {
  const bought = mine().find((each) => each.id === id);
  /** Since when each step is under way, as far as this page has seen. @type {Map<string, number>} */
  const began = new Map();
  /** Steps that were seen to be given back, or that take long: they are tried again. @type {Set<string>} */
  const again = new Set();
  let order, problem, line;

  function draw() {
    if (!order && problem) return place.show(h("h1", null, "Your order"), notThere());
    if (!order) return place.show(h("h1", null, "Your order"), h("div", { class: "skeleton" }));
    const words = orderWords(order, isSlow());
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
          "We cannot look at the moment, and go on trying. This is what we knew last.",
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

  function step(each) {
    const { look, words, more } = stepWords(each, again.has(each.name), hasEnded(order));
    return h("li", { key: each.name, class: look }, badge(look, words), more && h("p", { class: "muted small" }, more));
  }

  const notThere = () =>
    h(
      "div",
      { class: "note error", role: "alert" },
      h("p", null, problem.status === 404 ? "There is no order with this number." : problem.message),
      h("p", null, h("a", { href: "#/orders" }, "Your orders")),
    );

  const isSlow = () => again.size > 0 || order.steps.some(({ tryingAgain }) => tryingAgain);

  function look(steps) {
    for (const { name, state } of steps) {
      if (state === "Running" && !began.has(name)) began.set(name, Date.now() - (order ? 0 : age(id) * 1000));
      const takesLong = state === "Running" && Date.now() - (began.get(name) ?? Infinity) > LONG_SECONDS * 1000;
      if (takesLong || (state === "NotStarted" && began.has(name))) again.add(name);
      if (state !== "Running" && state !== "NotStarted") again.delete(name);
    }
  }

  async function ask(signal) {
    let answer;
    try {
      answer = (await call(`/api/orders/${id}`, { signal })).data;
    } catch (fault) {
      if (!(fault instanceof Problem && fault.status === 404)) throw fault;
      if (age(id) < FRESH_SECONDS) answer = ACCEPTED;
      else return gone(fault);
    }
    look(answer.steps);
    [order, problem] = [answer, null];
    draw();
    if (bought) heard(id, line);
    return { next: hasEnded(order) ? null : pause(), changed: true };
  }

  function gone(fault) {
    [order, problem] = [null, fault];
    draw();
    return { next: null, changed: false };
  }

  function pause() {
    if (order.processState === "Accepted") return SOON_SECONDS;
    return age(id) < PATIENT_AFTER ? OPEN_SECONDS : PATIENT_SECONDS;
  }

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
  return (Date.now() - [...time].reduce((sum, each) => sum * 32 + LETTERS.indexOf(each), 0)) / 1000;
}
