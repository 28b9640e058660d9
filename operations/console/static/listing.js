/** What a list is made of: pages from the API, and what changed since. */

import { ask, looking } from "./session.js";
import { actionsOf } from "./words.js";

const LIMIT = 200;

/** @typedef {{workflow?: string, step?: string, agent?: string, cause?: string, text?: string, since?: string, until?: string}} Filter */

/**
 * The orders of a list, as a dry run of its first bulk action lists them: so what is shown is what is meant.
 * @param {string} list @param {Filter} filter of which it knows all but a text and times
 * @param {number} count of pages @param {AbortSignal} signal
 */
export async function matching(list, { workflow, step, agent, cause }, count, signal) {
  const [{ name }] = actionsOf(list);
  const body = { ...looking(), action: name, where: given({ workflow, step, agent, cause }), limit: LIMIT };
  return pages(count, async (more) => {
    const { matching, until, continuation } = await ask("/api/operator/bulk", { body: { ...body, ...more }, signal });
    return { orders: matching, until, next: continuation && { continuation, until } };
  });
}

/**
 * Orders in this state, or with this end.
 * @param {string} state @param {Filter} filter @param {number} count of pages @param {AbortSignal} signal
 */
export async function open(state, { workflow, step, agent, cause, text, since, until }, count, signal) {
  const filter = given({ workflow, step, agent, cause, text, since, until });
  return pages(count, async (more) => {
    const query = new URLSearchParams({ state, limit: String(LIMIT), ...filter, ...more });
    const { orders, continuation } = await ask(`/api/operator/orders?${query}`, { signal });
    return { orders, next: continuation && { continuation } };
  });
}

const given = (filter) => Object.fromEntries(Object.entries(filter).filter(([, value]) => value));

/** As many pages as are wanted, if there are so many. */
async function pages(count, one) {
  /** @type {{orderId: string, situation?: string}[]} */
  let orders = [];
  let next, until;
  do {
    const page = await one(next);
    orders = [...orders, ...page.orders];
    [next, until] = [page.next, until ?? page.until];
  } while (next && --count > 0);
  return { orders, until, more: Boolean(next) };
}

const versions = (orders) => new Map(orders.map((order) => [order.orderId, JSON.stringify(order)]));

/** How many orders came, went or changed. */
export function differences(before, after) {
  const [one, other] = [versions(before), versions(after)];
  return [...new Set([...one.keys(), ...other.keys()])].filter((id) => one.get(id) !== other.get(id)).length;
}
