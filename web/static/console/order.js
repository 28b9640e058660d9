/** One order: why it is where it is, what can be done, and all that happened. */

import { h } from "../common/dom.js";
import { badge } from "../common/marks.js";
import { countdown } from "../common/time.js";
import { act } from "./act.js";
import { bars } from "./bars.js";
import { graph } from "./graph.js";
import { historyOf } from "./history.js";
import { live } from "./live.js";
import { at, copier, text } from "./parts.js";
import { ask } from "./session.js";
import { action, isOver, orderLook, stepLook, waitsForOperator } from "./words.js";

const OPEN_SECONDS = 5;
const SOON_SECONDS = 2;
const SOON_FOR = 30_000;
const WAITING_SECONDS = 10;

/** @param {import("./main.js").Place} place @param {URLSearchParams} _ @param {string} id @returns {import("./main.js").Open} */
export function orderPage(place, _, id) {
  let actedAt = 0;
  const view = { failuresOnly: false, all: false };

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
        order.actions.map(action).map((each, number) =>
          h(
            "button",
            {
              key: each.name,
              class: each.danger ? "danger" : number === 0 ? "main" : "",
              onClick: () => act(each, order, place, acted),
            },
            each.title,
          ),
        ),
      ),
    ...(order.steps.length ? recorded(order) : []),
  ];

  /** What is known of an order once it is more than accepted. */
  const recorded = (order) => [
    h(
      "section",
      { "aria-labelledby": "flow" },
      h("h2", { id: "flow" }, "Workflow"),
      h(
        "div",
        { class: "wide", tabindex: 0, role: "group", "aria-label": "Workflow as a graph" },
        graph(order.steps, innerWidth > 700),
      ),
      steps(order),
    ),
    h("section", { "aria-labelledby": "times" }, h("h2", { id: "times" }, "Attempts"), bars(order)),
    h(
      "section",
      { "aria-labelledby": "bought" },
      h("h2", { id: "bought" }, "What was ordered"),
      h("pre", { class: "wide", tabindex: 0 }, JSON.stringify(order.payload, null, 2)),
    ),
    historyOf(order, view, () => page.redraw()),
  ];

  const page = live(place, { title: "Order", load, draw, every });
  return page;
}

function title(order) {
  const { look, word } = orderLook(order);
  return h(
    "div",
    { class: "head", key: "head" },
    h("h1", null, h("span", { class: "for-readers" }, "Order "), h("code", null, order.orderId)),
    h(
      "p",
      { class: "facts-line" },
      badge(look, word),
      order.outcome && order.outcome !== word.toLowerCase() && h("span", null, order.outcome),
      h(
        "span",
        { class: "muted" },
        order.steps.length > 0 && `${order.workflow} v${order.workflowVersion}, ${order.priority} priority, `,
        "placed ",
        at(order.placedAt),
      ),
      order.keys.length > 0 && h("span", null, `known as ${order.keys.join(", ")}`),
    ),
    h(
      "p",
      null,
      copier("id", () => order.orderId),
      copier("link", () => location.href),
      copier("JSON", () => JSON.stringify(order, null, 2)),
    ),
  );
}

/** Why it is there, as the rules that will act say it. */
function why({ summary, nextActor, nextAt, ifNothingHappens }, order) {
  return h(
    "section",
    { class: "why", "aria-label": "Why it is there", key: "why" },
    h("p", { class: "summary" }, text(summary, 600)),
    h(
      "dl",
      { class: "facts" },
      nextActor && [
        h("dt", null, "Next"),
        h(
          "dd",
          null,
          nextActor,
          nextAt && [", ", h("strong", { live: () => countdown(nextAt) }), " (", at(nextAt), ")"],
        ),
      ],
      h("dt", null, "Otherwise"),
      h("dd", null, ifNothingHappens),
      order.lockedBy && [h("dt", null, "Locked by"), h("dd", null, order.lockedBy)],
      order.completeBy && [h("dt", null, "Complete by"), h("dd", null, at(order.completeBy))],
    ),
  );
}

/** How often it was tried: a round has an idempotency key of its own, and most steps have one round. */
const attemptsOf = ({ attempts, round, failureCount, threshold }) =>
  `${attempts}${round ? ` (now round ${round + 1})` : ""}, failed ${failureCount} of ${threshold}`;

const later = ({ notBefore }) => (notBefore ? h("div", { class: "quiet" }, "not before ", at(notBefore)) : null);

/** The steps in words: what the graph shows, for whoever does not see it. */
export const steps = ({ steps: all }) =>
  h(
    "table",
    { class: "rows" },
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        ["Step", "State", "Attempts", "Agent", "After", "Reason or result"].map((name) =>
          h("th", { scope: "col" }, name),
        ),
      ),
    ),
    h(
      "tbody",
      null,
      all.map((step) => {
        const { look, word } = stepLook(step);
        const said =
          step.reason ??
          (step.result
            ? Object.entries(step.result)
                .map(([name, value]) => `${name} ${value}`)
                .join(", ")
            : "");
        return h(
          "tr",
          { key: step.name },
          h(
            "td",
            { "data-name": "Step" },
            h("strong", null, step.name),
            step.title ? h("div", { class: "quiet" }, text(step.title)) : null,
            step.pivot ? h("div", { class: "quiet" }, "point of no return") : null,
          ),
          h("td", { "data-name": "State" }, badge(look, word)),
          h("td", { "data-name": "Attempts" }, attemptsOf(step)),
          h("td", { "data-name": "Agent" }, step.agent),
          h("td", { "data-name": "After" }, step.after?.join(", ")),
          h("td", { "data-name": "Reason or result" }, text(said), later(step)),
        );
      }),
    ),
  );
