/** One action on all orders of a list: exactly on those that the dry run named, and none that failed later. */

import { Problem } from "../common/api.js";
import { h } from "../common/dom.js";
import { confirm } from "./dialog.js";
import { many } from "./parts.js";
import { ask, looking } from "./session.js";

const PAGE = 200;
const ACTIONS = /** @type {const} */ ({ resubmit: "Resubmit", skip: "Skip", cancel: "Cancel" });
const EFFECTS = {
  resubmit: (count) => `${count} start again at the step that failed.`,
  skip: (count, step) => `${count} go on without ${step}.`,
  cancel: (count) => `Of ${count} everything that was ever tried is taken back.`,
};

/** @typedef {{workflow?: string, step?: string, reason?: string}} Where */

/**
 * Whether a bulk action can mean exactly the orders of a list with this filter.
 * @param {import("./listing.js").Filter} filter
 */
export const canMean = ({ text }) => !text;

/**
 * @param {Where} where @param {string} until what the list's dry run said @param {import("./main.js").Place} place
 * @param {(problem: Problem) => void} failed shows why nothing begins
 */
export function bulkButtons(where, until, place, failed) {
  const button = (action, label, look) =>
    h("button", { class: look, onClick: () => begin(action, where, until, place).catch(shownBy(failed)) }, label);
  return h(
    "p",
    { class: "buttons" },
    button("resubmit", "Resubmit all of these"),
    where.step && button("skip", `Skip ${where.step} in all of these`),
    button("cancel", "Cancel all of these", "danger"),
  );
}

const shownBy = (failed) => (fault) => {
  if (!(fault instanceof Problem)) throw fault;
  failed(fault);
};

/** @param {"resubmit" | "skip" | "cancel"} action @param {Where} where @param {string} until @param {import("./main.js").Place} place */
async function begin(action, where, until, place) {
  const given = { action, where: Object.fromEntries(Object.entries(where).filter(([, value]) => value)), until };
  const meant = [];
  await eachPage({ ...looking(), ...given, dryRun: true }, (page) => meant.push(...page.matching));
  const count = many(meant.length, "order");
  confirm({
    title: `${ACTIONS[action]} ${count}`,
    effect: `${EFFECTS[action](count, where.step)} Orders that fail from now on are left alone.`,
    danger: action === "cancel",
    orders: meant.length,
    run: ({ operator, note }, progress) => run({ ...given, operator, note, dryRun: false }, meant.length, progress),
    after: place.again,
  });
}

async function run(request, total, progress) {
  /** @type {[string[], {orderId: string, why: string}[], string[]]} */
  const [done, refused, changed] = [[], [], []];
  await eachPage(request, (page) => {
    done.push(...page.done);
    refused.push(...page.refused);
    changed.push(...page.changed);
    progress(`${done.length + refused.length + changed.length} of ${total}`);
  });
  return h(
    "div",
    { role: "status", class: "outcome" },
    h(
      "p",
      null,
      h("strong", null, `${done.length} done, ${refused.length} refused, ${changed.length} changed meanwhile.`),
    ),
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
        "Somebody else changed: ",
        changed.map((id) => [link(id), " "]),
      ),
  );
}

const link = (id) => h("a", { href: `#/orders/${id}` }, h("code", null, id));

async function eachPage(request, read) {
  let continuation;
  do {
    const page = await ask("/api/operator/bulk", {
      body: { ...request, limit: PAGE, ...(continuation && { continuation }) },
    });
    read(page);
    continuation = page.continuation;
  } while (continuation);
}
