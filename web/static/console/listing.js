/** What a list is made of: pages from the API, the filter that the API does not know, and what changed since. */

import { ask, looking } from "./session.js";

/** Orders in Error, as a dry run of a bulk action lists them: so what is shown is what is meant. */
export async function failed({ step, reason }, wanted, signal) {
  const where = { ...(step && { step }), ...(reason && { reason }) };
  const body = { ...looking(), action: "resubmit", where, limit: Math.min(wanted, 200) };
  return pages(wanted, async (more) => {
    const { matching, until, continuation } = await ask("/api/operator/bulk", { body: { ...body, ...more }, signal });
    return { orders: matching, until, next: continuation && { continuation, until } };
  });
}

/** Orders that are open in this state. */
export async function open(state, wanted, signal) {
  return pages(wanted, async ({ continuation } = /** @type {any} */ ({})) => {
    const query = new URLSearchParams({
      state,
      limit: String(Math.min(wanted, 500)),
      ...(continuation && { continuation }),
    });
    const { orders, continuation: next } = await ask(`/api/operator/orders?${query}`, { signal });
    return { orders, next: next && { continuation: next } };
  });
}

/** Ask page by page until there are as many as are wanted. */
async function pages(wanted, one) {
  let [orders, next, until] = [[], undefined, undefined];
  do {
    const page = await one(next);
    orders = [...orders, ...page.orders];
    [next, until] = [page.next, until ?? page.until];
  } while (next && orders.length < wanted);
  return { orders, until, more: Boolean(next) };
}

/** Whether an order is as the address says. */
export const fits =
  ({ step, reason, text: part, workflow }) =>
  (order) =>
    (!step || order.failedSteps.includes(step)) &&
    (!reason || order.reason === reason) &&
    (!workflow || order.workflow === workflow) &&
    (!part ||
      `${order.orderId} ${order.reason ?? ""} ${order.workflow} ${order.failedSteps}`
        .toLowerCase()
        .includes(part.toLowerCase()));

const told = (orders) => new Map(orders.map((each) => [each.orderId, JSON.stringify(each)]));

/** How many orders came, went or changed. */
export function differences(before, after) {
  const [one, other] = [told(before), told(after)];
  return [...new Set([...one.keys(), ...other.keys()])].filter((id) => one.get(id) !== other.get(id)).length;
}
