/** Reads from an order's history when each attempt began, and how it ended. */

import { LOOK } from "../../../engine/pages/static/common/marks.js";
import { text } from "../../../engine/pages/static/common/words.js";
import { event } from "./words.js";

/** @typedef {import("./words.js").Term} Term */
/** @typedef {{step: string, attempt: number, undo: boolean, from: number, to: number, end: Term | null, why?: string, completeBy?: number}} Attempt `why` is told of what was not tried */
/** @typedef {{event: string, step?: string, attempt?: number, isUndo?: boolean, reason?: string | null}} HistoryEvent */
/** @typedef {{from: number, to: number}} Gap when a step waited for its next attempt */

/** How an attempt ended of which only another version of the app knows. @type {Term} */
const UNKNOWN = { word: text("console.attempts.ended"), mark: LOOK.retried };

/** @param {{history: {at: string, events: HistoryEvent[]}[], steps: {name: string, completeBy: string | null}[]}} order @param {number} now @returns {Attempt[]} */
export function attempts({ history, steps }, now) {
  /** @type {Attempt[]} */
  const found = [];
  for (const { at, events } of history) for (const recorded of events) read(recorded, Date.parse(at), found, now);
  for (const { name, completeBy } of steps) {
    const open = found.findLast((attempt) => attempt.step === name && !attempt.end);
    if (open && completeBy) open.completeBy = Date.parse(completeBy);
    else if (open) Object.assign(open, { to: Date.parse(history.at(-1)?.at ?? ""), end: UNKNOWN }); // in words alone
  }
  return found;
}

/** @param {HistoryEvent} event @param {number} at @param {Attempt[]} found @param {number} now */
function read({ event: name, step = "", attempt = 0, isUndo: undo = false, reason }, at, found, now) {
  const { beginsAttempt, endsAttempt } = event(name);
  if (beginsAttempt) found.push({ step, attempt, undo, from: at, to: now, end: null });
  const last = endsAttempt && found.findLast((earlier) => earlier.step === step && earlier.attempt === attempt);
  // An attempt that expires may be the one that the step is given up with: the second of the two says more.
  if (last && (!last.end || last.to === at)) {
    Object.assign(last, { to: at, end: endsAttempt });
    if (endsAttempt.mark === LOOK.waits && reason) last.why = reason;
  }
}

/**
 * When a step waited: between two attempts, and since the last one if it is to be tried again.
 * @param {Attempt[]} own of one step @param {boolean} waits whether it waits now @param {number} now @returns {Gap[]}
 */
export function gaps(own, waits, now) {
  const found = own
    .slice(1)
    .map((attempt, at) => ({ from: own[at].to, to: attempt.from, same: attempt.undo === own[at].undo }));
  const last = own.at(-1);
  if (last?.end && waits) found.push({ from: last.to, to: now, same: true });
  return found.filter(({ from, to, same }) => same && to > from).map(({ from, to }) => ({ from, to }));
}
