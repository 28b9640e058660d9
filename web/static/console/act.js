/** What an operator does to one order, or to the alerts of one cause. Each asks first. */

import { confirm } from "./dialog.js";
import { many } from "./parts.js";
import { ask } from "./session.js";

/** @param {import("./words.js").Action} action @param {any} order @param {import("./main.js").Place} place @param {() => void} acted */
export function act({ name, title, button, effect, danger, ofStep }, order, place, acted) {
  const failed = order.steps.filter(({ state }) => state === "Failed").map((step) => step.name);
  confirm({
    title,
    act: button,
    effect,
    danger,
    choice: ofStep ? { name: "step", label: "Which step", choices: failed } : undefined,
    run: async ({ operator, note, step }) => {
      await ask(`/api/operator/orders/${order.orderId}/${name}`, {
        body: { operator, note, ...(ofStep && { step }) },
      });
      place.say(`${title}: done`);
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
