/** The words that customers read of an order and its steps, made from what the app says of it. */

import { LOOK } from "../../engine/pages/static/common/marks.js";

/** @typedef {import("../../engine/pages/static/common/marks.js").Look} Look */
/** @typedef {{name: string, state: string, tryingAgain?: boolean}} Step */
/** @typedef {{processState: string, direction: string, outcome?: string, notBefore?: string, steps: Step[]}} Order */
/** @typedef {{look: Look, line: string, next: string}} OrderWords */
/** @typedef {{look: Look, words: string, more: string}} StepWords */

/** The words for each step: while it runs, once it is done, and once it is undone. @type {Record<string, [string, string, string]>} */
const STEPS = {
  stock: ["Setting your tea aside", "Your tea is set aside", "Put back on the shelf"],
  payment: ["Checking payment", "Payment checked", "Payment released"],
  shipment: ["Sending it to you", "Sent to you", "Parcel called back"],
  capture: ["Taking the payment", "Paid", "Money returned"],
};
const TRYING_AGAIN = "Taking longer than usual; we are trying again";
const FOLLOWS = "This page updates by itself.";

/** @type {Record<string, OrderWords>} */
const ORDER = {
  accepted: { look: LOOK.plain, line: "One moment.", next: "We have received your order, and are recording it." },
  runs: { look: LOOK.runs, line: "We are on it.", next: FOLLOWS },
  slow: {
    look: LOOK.retried,
    line: `${TRYING_AGAIN}.`,
    next: "Your order is safe. You may close this page and come back.",
  },
  later: { look: LOOK.plain, line: "We will start at the time you chose.", next: FOLLOWS },
  done: { look: LOOK.well, line: "All done. Your parcel is on its way.", next: "You do not need to do anything." },
  beingUndone: {
    look: LOOK.undone,
    line: "Your order is being cancelled.",
    next: "We are undoing everything that was done.",
  },
  inDoubt: {
    look: LOOK.wrong,
    line: "We are looking into it.",
    next: "Something went wrong. Your order is safe, and you do not need to do anything.",
  },
};

/** The words for an order. @param {Order} order @param {boolean} isSlow whether the customer has waited long for a step @returns {OrderWords} */
export function orderWords({ processState, direction, outcome, notBefore, steps }, isSlow) {
  if (processState === "Accepted") return ORDER.accepted;
  if (processState === "Processed") return ORDER.done;
  if (outcome === "undone")
    return { look: LOOK.undone, line: "Cancelled. Everything was undone.", next: charge(steps) };
  if (processState === "Error") return ORDER.inDoubt;
  if (direction === "undo") return ORDER.beingUndone;
  if (notBefore) return ORDER.later;
  return isSlow || steps.some((step) => step.tryingAgain) ? ORDER.slow : ORDER.runs;
}

/** The words for a step of an order. @param {Order} order @param {Step} step @param {boolean} isSlow whether the customer has waited long for it @returns {StepWords} */
export function stepWords(order, { name, state, tryingAgain }, isSlow) {
  const [doing, done, back] = STEPS[name] ?? [name, `${name}: done`, `${name}: undone`];
  if (tryingAgain || isSlow) return { look: LOOK.retried, words: doing, more: TRYING_AGAIN };
  const failed = order.outcome === "undone" ? "This could not be done" : "We are looking into it";
  /** @type {Record<string, [Look, string, string?]>} */
  const known = {
    Running: [LOOK.runs, doing],
    Completed: [LOOK.well, done],
    Skipped: [LOOK.well, done],
    Failed: [LOOK.wrong, doing, failed],
    Undoing: [LOOK.undone, "Undoing this step", doing],
    Undone: [LOOK.undone, back],
  };
  // A state that is newer than this page is shown like a step that waits.
  const [look, words, more = ""] = known[state] ?? [LOOK.plain, doing];
  return { look, words, more };
}

/** Whether a customer can wait for a step so long that this is said. @param {Order} order @param {Step} step */
export const canBeSlow = ({ processState }, { state, tryingAgain }) =>
  state === "Running" && !tryingAgain && processState !== "Error" && processState !== "Processed";

/** What is said of the money: "not charged" only if the capture was never requested. @param {Step[]} steps */
function charge(steps) {
  const capture = steps.find(({ name }) => name === "capture");
  const wasRequested = capture !== undefined && capture.state !== "NotStarted";
  return wasRequested ? "Your payment will be returned." : "You were not charged.";
}
