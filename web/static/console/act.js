/** What an operator does to one order, or to the alerts of one cause. Each asks first. */

import { confirm } from "./dialog.js";
import { many } from "./parts.js";
import { ask } from "./session.js";

const EFFECTS = {
  resubmit: "The steps that failed start again with a fresh count. What is completed stays completed.",
  skip: "The order goes on without this step, because it was done, or taken back, by other means.",
  cancel:
    "Everything that was ever tried is taken back, last first. Steps that run answer or expire before. This cannot be stopped.",
};
export const NAMES = { resubmit: "Resubmit", skip: "Skip a step", cancel: "Cancel the order" };

/** @param {"resubmit" | "skip" | "cancel"} action @param {any} order @param {import("./main.js").Place} place @param {() => void} acted */
export function act(action, order, place, acted) {
  const failed = order.steps.filter(({ state }) => state === "Failed").map(({ name }) => name);
  confirm({
    title: NAMES[action],
    act: action === "cancel" ? "Take all of it back" : action === "skip" ? "Skip it" : "Resubmit",
    effect: EFFECTS[action],
    danger: action === "cancel",
    choice: action === "skip" ? { name: "step", label: "Which step", choices: failed } : undefined,
    run: async (given) => {
      const step = action === "skip" ? { step: given.step } : {};
      await ask(`/api/operator/orders/${order.orderId}/${action}`, {
        body: { operator: given.operator, note: given.note, ...step },
      });
      place.say(`${NAMES[action]}: done`);
      acted();
    },
    after: place.again,
  });
}

/** Take the alerts of a cause upon oneself. @param {any} cause @param {import("./main.js").Place} place */
export function take(cause, place) {
  confirm({
    title: "I take it",
    effect: `${many(cause.unacknowledged.length, "alert")} of this cause will show your name, so that nobody else begins with the same. Nothing else changes.`,
    run: async ({ operator, note }) => {
      await ask("/api/operator/alerts/acknowledge", { body: { operator, note, alerts: cause.unacknowledged } });
      place.say("Taken");
    },
    after: place.again,
  });
}
