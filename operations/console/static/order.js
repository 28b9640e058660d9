/** One order: why it is where it is, what can be done, and all that happened. */

import { h } from "../../../engine/pages/static/common/dom.js";
import { badge } from "../../../engine/pages/static/common/marks.js";
import { countdown } from "../../../engine/pages/static/common/time.js";
import { named, rich, text } from "../../../engine/pages/static/common/words.js";
import { act } from "./act.js";
import { answers } from "./answers.js";
import { bars } from "./bars.js";
import { graph } from "./graph.js";
import { historyOf } from "./history.js";
import { live } from "./live.js";
import { ordered } from "./ordered.js";
import { at, copier, joined, localized, outside } from "./parts.js";
import { ask } from "./session.js";
import { steps } from "./steps.js";
import { action, isOver, logOf, orderLook, waitsForOperator } from "./words.js";

const OPEN_SECONDS = 5;
const SOON_SECONDS = 2;
const SOON_FOR = 30_000;
const WAITING_SECONDS = 10;
/** What stands left and right of the page on a phone, in pixels. */
const MARGINS = 32;

/** @param {import("./main.js").Place} place @param {URLSearchParams} _ @param {string} id @returns {import("./main.js").Open} */
export function orderPage(place, _, id) {
  let actedAt = 0;
  const view = { failuresOnly: false, all: false };
  /** @type {import("./ordered.js").Shown} */
  const shown = {};

  async function load(signal) {
    const path = `/api/operator/orders/${id}`;
    const [order, explanation] = await Promise.all([ask(path, { signal }), ask(`${path}/explain`, { signal })]);
    return { order, explanation };
  }

  function every({ order }) {
    if (isOver(order)) return null;
    if (Date.now() - actedAt < SOON_FOR) return SOON_SECONDS;
    return waitsForOperator(order) ? WAITING_SECONDS : OPEN_SECONDS;
  }

  function acted() {
    actedAt = Date.now();
    page.now();
  }

  const draw = ({ order, explanation }) => [
    title(order),
    why(explanation, order),
    order.actions.length > 0 &&
      h(
        "p",
        { class: "buttons", key: "actions" },
        order.actions
          .map(action)
          .sort(dangerLast)
          .map((button, number) =>
            h(
              "button",
              {
                key: button.name,
                class: button.danger ? "danger" : number === 0 && waitsForOperator(order) ? "main" : "",
                "data-first": number === 0,
                onClick: () => act(button, order, place, acted),
              },
              button.title,
            ),
          ),
      ),
    answers(order, place, acted),
    ...(order.steps.length ? recorded(order) : []),
  ];

  /** What is known of an order once it is more than accepted. */
  const recorded = (order) => [
    h(
      "section",
      { "aria-labelledby": "flow" },
      h("h2", { id: "flow" }, text("console.order.workflow")),
      h(
        "div",
        { class: "wide", tabindex: 0, role: "group", "aria-label": text("console.order.graph") },
        graph(order.steps, innerWidth > 700, innerWidth - MARGINS),
      ),
      steps(order),
    ),
    h("section", { "aria-labelledby": "times" }, h("h2", { id: "times" }, text("console.order.attempts")), bars(order)),
    ordered(order, shown, place, () => page.redraw()),
    historyOf(order, view, () => page.redraw()),
  ];

  const page = live(place, {
    title: text("console.order.title"),
    shape: "order",
    heading: () => id,
    load,
    draw,
    every,
  });
  return page;
}

const dangerLast = (/** @type {import("./words.js").Action} */ one, other) => Number(one.danger) - Number(other.danger);

function title(order) {
  const { look, word } = orderLook(order);
  return h(
    "div",
    { class: "head", key: "head" },
    h(
      "h1",
      null,
      h("span", { class: "for-readers" }, text("console.order.title"), " "),
      h("code", null, order.orderId),
    ),
    h(
      "p",
      { class: "facts-line" },
      badge(look, word),
      h(
        "span",
        { class: "muted" },
        joined(
          ", ",
          order.steps.length > 0 && `${order.workflow} v${order.workflowVersion}`,
          order.steps.length > 0 && named("console.order.priority", order.priority),
          rich("console.order.placed", { time: at(order.placedAt) }),
        ),
      ),
      order.keys.length > 0 && h("span", null, text("console.order.known-as", { keys: order.keys.join(", ") })),
    ),
    h(
      "p",
      null,
      copier(text("console.order.copy-id"), () => order.orderId),
      copier(text("console.order.copy-link"), () => location.href),
      copier(text("console.order.copy-json"), () => JSON.stringify(order, null, 2)),
      outside(logOf(order.orderId), text("console.order.log")),
    ),
  );
}

/** Why the order is in its state, as the rules that will act say it. */
function why({ summary, nextActor, nextAt, ifNothingHappens }, order) {
  const actor = nextActor && named("console.actor", nextActor);
  return h(
    "section",
    { class: "why", "aria-label": text("console.order.why"), key: "why" },
    h("p", { class: "summary" }, localized(summary, 600)),
    h(
      "dl",
      { class: "facts" },
      actor && [
        h("dt", null, text("console.order.next")),
        h(
          "dd",
          null,
          nextAt
            ? rich("console.order.next-at", {
                actor,
                left: h("strong", { live: () => countdown(nextAt) }),
                time: at(nextAt),
              })
            : actor,
        ),
      ],
      !isOver(order) &&
        !waitsForOperator(order) && [
          h("dt", null, text("console.order.otherwise")),
          h("dd", null, localized(ifNothingHappens, 600)),
        ],
      order.undoneBecause &&
        order.undoneBecause !== order.reason && [
          h("dt", null, text("console.order.undone-because")),
          h("dd", null, localized(order.undoneBecause)),
        ],
      order.lockedBy && [h("dt", null, text("console.order.locked-by")), h("dd", null, order.lockedBy)],
      order.completeBy && [h("dt", null, text("console.order.complete-by")), h("dd", null, at(order.completeBy))],
      order.dueBy && [h("dt", null, text("console.order.due-by")), h("dd", null, at(order.dueBy))],
    ),
  );
}
