/** What customers are told of their orders, in calm words. */

/** @typedef {{name: string, state: string, tryingAgain?: boolean}} Step */
/** @typedef {import("../../web/static/common/marks.js").Look} Look */
/** @typedef {{processState: string, outcome?: string, placedAt?: string, steps: Step[]}} Order */

/** By step: while it is done, once it is done, once it was taken back. */
const STEPS = {
  stock: ["Setting your tea aside", "Your tea is set aside", "Put back on the shelf"],
  payment: ["Checking payment", "Payment checked", "Payment released"],
  shipment: ["Sending it to you", "Sent to you", "Parcel called back"],
  capture: ["Taking the payment", "Paid", "Money returned"],
};

/**
 * @param {Step} step @param {boolean} again whether it was seen to be tried before @param {boolean} ended
 * @returns {{look: Look, words: string, more: string}}
 */
export function stepWords({ name, state, tryingAgain }, again, ended) {
  const [doing, done, back] = STEPS[name] ?? [name, `${name}: done`, `${name}: taken back`];
  const more = tryingAgain || again ? "Taking longer; we try again" : "";
  return (
    {
      NotStarted: { look: more ? "again" : "pending", words: doing, more },
      Running: { look: more ? "again" : "processing", words: doing, more },
      Completed: { look: "processed", words: done, more: "" },
      Skipped: { look: "processed", words: done, more: "" },
      Failed: { look: "error", words: doing, more: ended ? "This could not be done" : "A person is looking at it" },
      Undoing: { look: "undo", words: "Taking it back", more: doing },
      Undone: { look: "undo", words: back, more: "" },
    }[state] ?? { look: "pending", words: doing, more: "" }
  );
}

/**
 * The order in one line, and what comes next.
 * @param {Order} order @param {boolean} slow @returns {{look: Look, line: string, next: string}}
 */
export function orderWords(order, slow) {
  if (order.processState === "Processed")
    return { look: "processed", line: "All done. Your parcel is on its way.", next: "You need do nothing more." };
  if (order.outcome === "undone") return { look: "undo", line: "Cancelled; all taken back.", next: charge(order) };
  if (order.processState === "Error")
    return {
      look: "error",
      line: "A person is looking at it.",
      next: "Something needs a hand. Your order is safe, and you need do nothing.",
    };
  if (order.processState === "Accepted")
    return { look: "pending", line: "One moment.", next: "Your order has arrived, and is being written down." };
  if (order.steps.some(({ state }) => state === "Undoing" || state === "Undone"))
    return { look: "undo", line: "Your order is being cancelled.", next: "Everything that was done is taken back." };
  if (slow)
    return {
      look: "again",
      line: "Taking longer; we try again.",
      next: "Your order is safe. You may close this page and come back.",
    };
  return { look: "processing", line: "We are on it.", next: "This page follows your order by itself." };
}

/** "Not charged" is said only if the money was never asked for. */
function charge({ steps }) {
  const capture = steps.find(({ name }) => name === "capture");
  return !capture || capture.state === "NotStarted" ? "You were not charged." : "What was paid goes back to you.";
}

export const hasEnded = ({ processState, outcome }) => processState === "Processed" || outcome === "undone";
