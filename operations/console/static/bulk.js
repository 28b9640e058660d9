/** One action on all orders of a list: exactly on those that the dry run named, and none that failed later. */

import { Problem } from "../../../engine/pages/static/common/api.js";
import { h } from "../../../engine/pages/static/common/dom.js";
import { now } from "../../../engine/pages/static/common/time.js";
import { named, text } from "../../../engine/pages/static/common/words.js";
import { confirm } from "./dialog.js";
import { argumentsOf, fieldsOf } from "./fields.js";
import { follow } from "./followed.js";
import { looking, send } from "./session.js";
import { action, actionsOf, isOfStep } from "./words.js";

/** So many orders are named by a call, and so many are acted on: a call has to end in time, and says how far it is. */
const LISTED = 200;
const ACTED_ON = 25;
/** @typedef {{workflow?: string, step?: string, agent?: string, cause?: string}} Where */

/**
 * Whether a bulk action can mean exactly the orders of a list with this filter.
 * @param {import("./listing.js").Filter} filter
 */
export const canMean = ({ text, since, until }) => !text && !since && !until;

/**
 * @param {string} list @param {Where} where
 * @param {string | undefined} until what the list's dry run said, if it was made by one
 * @param {import("./main.js").Place} place
 * @param {(problem: Problem) => void} failed shows why nothing begins
 */
export function bulkButtons(list, where, until, place, failed) {
  const buttons = actionsOf(list).filter((button) => !isOfStep(button) || where.step);
  if (!buttons.length) return null;
  return h(
    "p",
    { class: "buttons" },
    buttons.map((button, number) =>
      h(
        "button",
        {
          key: button.name,
          "data-first": number === 0,
          class: button.danger ? "danger" : "",
          onClick: once(() => begin(button, where, until, place).catch(shownBy(failed))),
        },
        labelOf(button, where),
      ),
    ),
  );
}

/** What a button does, though it is clicked twice: until it is done, the button is busy. */
function once(act) {
  return async ({ currentTarget: button }) => {
    if (button.getAttribute("aria-busy")) return;
    button.setAttribute("aria-busy", "true");
    try {
      await act();
    } finally {
      button.removeAttribute("aria-busy");
    }
  };
}

const verb = ({ name }) => named("console.bulk.verb", name);

const labelOf = (action, { step = "" }) =>
  isOfStep(action)
    ? text("console.bulk.step-of-all", { action: verb(action), step })
    : text("console.bulk.all", { action: verb(action) });

const shownBy = (failed) => (fault) => {
  if (!(fault instanceof Problem)) throw fault;
  failed(fault);
};

/** @param {import("./words.js").Action} action @param {Where} where @param {string | undefined} until @param {import("./main.js").Place} place */
async function begin(action, where, until, place) {
  const filter = Object.fromEntries(Object.entries(where).filter(([, value]) => value));
  const given = { action: action.name, where: filter, until };
  const matching = [];
  await readPages({ ...looking(), ...given, dryRun: true }, (page) => {
    matching.push(...page.matching);
    given.until ??= page.until;
  });
  const declared = action.fields.filter(({ kind }) => kind !== "step"); // the step is that of the filter
  confirm({
    title: text("console.bulk.title", { action: verb(action), count: matching.length }),
    effect: text("console.bulk.effect", { effect: action.effect }),
    danger: action.danger,
    orders: matching.length,
    fields: fieldsOf(declared, []),
    run: (typed, progress) => {
      const { operator, note } = typed;
      const request = { ...given, operator, note, arguments: argumentsOf(declared, typed), dryRun: false };
      return run(request, matching.length, progress);
    },
    after: place.again,
  });
}

async function run(request, total, progress) {
  /** @type {[string[], {orderId: string, why: string}[], string[]]} */
  const [done, refused, changed] = [[], [], []];
  const stillWaiting = new Set();
  const since = new Date(now()).toISOString();
  const handled = () => done.length + refused.length + changed.length;
  const read = (page) => {
    done.push(...page.done);
    refused.push(...page.refused);
    changed.push(...page.changed);
    page.stillWaiting.forEach((id) => stillWaiting.add(id));
    progress(text("console.bulk.progress", { done: handled(), all: total }));
  };
  /** @type {Problem | null} */
  const problem = await readPages(request, read).then(
    () => null,
    (fault) => {
      if (!(fault instanceof Problem) || !handled()) throw fault;
      return fault; // what was done until then is shown
    },
  );
  const orders = done.filter((id) => !stillWaiting.has(id)); // what waits still has not failed again
  follow({ done: action(request.action).done ?? request.action, orders, since });
  return h(
    "div",
    { role: "status", class: "outcome" },
    h(
      "p",
      null,
      h(
        "strong",
        null,
        text("console.bulk.outcome", { done: done.length, refused: refused.length, changed: changed.length }),
      ),
    ),
    problem &&
      h(
        "div",
        { class: "note wrong", role: "alert" },
        h("p", null, problem.message),
        problem.faults.map((fault) => h("p", null, fault)),
        h("p", null, text("console.bulk.stopped", { done: handled(), all: total })),
      ),
    stillWaiting.size > 0 && h("p", null, text("console.bulk.still-waiting", { count: stillWaiting.size })),
    refused.length > 0 &&
      h(
        "ul",
        null,
        refused.map(({ orderId, why }) => h("li", null, link(orderId), `: ${why}`)),
      ),
    changed.length > 0 &&
      h(
        "p",
        null,
        text("console.bulk.changed"),
        " ",
        changed.map((id) => [link(id), " "]),
      ),
  );
}

const link = (id) => h("a", { href: `#/orders/${id}` }, h("code", null, id));

async function readPages(request, read) {
  let continuation;
  do {
    const limit = request.dryRun ? LISTED : ACTED_ON;
    const page = await send("/api/operator/bulk", { ...request, limit, ...(continuation && { continuation }) });
    read(page);
    continuation = page.continuation;
  } while (continuation);
}
