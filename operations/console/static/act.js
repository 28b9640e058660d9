/** What an operator does to one order, to an agent, or to the alerts of one cause. Each asks first. */

import { sentOf, zone } from "../../../engine/pages/static/common/time.js";
import { text } from "../../../engine/pages/static/common/words.js";
import { confirm } from "./dialog.js";
import { argumentsOf, fieldsOf } from "./fields.js";
import { ask, send } from "./session.js";
import { action } from "./words.js";

/** @param {import("./words.js").Action} action @param {any} order @param {import("./main.js").Place} place @param {() => void} acted */
export function act({ name, title, button, effect, danger, fields }, order, place, acted) {
  const steps = order.steps.filter((step) => step.actions.includes(name)).map((step) => step.name);
  confirm({
    title,
    act: button,
    effect,
    danger,
    fields: fieldsOf(fields, steps),
    run: async (given) => {
      const { operator, note } = given;
      await send(`/api/operator/orders/${order.orderId}/${name}`, { operator, note, ...argumentsOf(fields, given) });
      place.say(text("console.act.done", { action: title }));
      acted();
    },
    after: place.again,
  });
}

/** Pause an agent until a time. @param {string} name @param {import("./main.js").Place} place */
export function pauseAgent(name, place) {
  const { title, button, effect } = action("pause-agent");
  confirm({
    title: text("console.act.on-agent", { action: title, agent: name }),
    act: button,
    effect,
    fields: [{ name: "until", label: text("console.act.until", { zone: zone() }), type: "datetime-local" }],
    run: async ({ operator, note, until }) => {
      await send(`/api/operator/agents/${name}/pause`, { operator, note, until: sentOf(until) });
      place.say(text("console.act.paused", { agent: name }));
    },
    after: place.again,
  });
}

/** Resume an agent before the time. @param {string} name @param {import("./main.js").Place} place */
export function resumeAgent(name, place) {
  const { title, button, effect } = action("resume-agent");
  confirm({
    title: text("console.act.on-agent", { action: title, agent: name }),
    act: button,
    effect,
    run: async ({ operator, note }) => {
      await send(`/api/operator/agents/${name}/resume`, { operator, note });
      place.say(text("console.act.resumed", { agent: name }));
    },
    after: place.again,
  });
}

/**
 * Take the alerts of a cause upon oneself.
 * @param {any} cause with where the `older` alerts begin, if there are some @param {import("./main.js").Place} place
 */
export function take(cause, place) {
  confirm({
    title: text("console.parts.take"),
    effect: text(cause.older ? "console.act.take-older" : "console.act.take", { count: cause.unacknowledged.length }),
    run: async ({ operator, note }, progress) => {
      const { taken, others } = await takeAll(cause, { operator, note }, (count) =>
        progress(text("console.act.taken", { count })),
      );
      const key = others ? "console.act.taken-others" : "console.act.taken";
      place.say(text(key, { count: taken, others }));
    },
    after: place.again,
  });
}

/** Alerts of the same cause, on a page of older alerts. */
const sameAs =
  ({ type, step, cause, reason }) =>
  (other) =>
    other.type === type && other.step === step && (other.cause || other.reason) === (cause || reason);

/**
 * Take the alerts that are shown, and then those of older pages; tell how many that are.
 * @param {any} cause @param {{operator: string, note: string}} signature @param {(count: number) => void} progress
 */
export async function takeAll(cause, signature, progress) {
  const means = cause.means ?? sameAs(cause);
  let [keys, continuation, taken, others] = [cause.unacknowledged, cause.older, 0, 0];
  for (;;) {
    if (keys.length) {
      const answer = await send("/api/operator/alerts/acknowledge", { ...signature, alerts: keys });
      taken += answer.acknowledged.length;
      others += answer.byOthers.length;
      progress(taken);
    }
    if (!continuation) return { taken, others };
    const page = await ask(`/api/operator/alerts/causes?continuation=${encodeURIComponent(continuation)}`);
    keys = page.causes.filter(means).flatMap(({ unacknowledged }) => unacknowledged);
    continuation = page.continuation;
  }
}
