/** Reads from an order's history when each attempt began, and how it ended. */

/** @typedef {{step: string, attempt: number, undo: boolean, from: number, to: number, end: "processed" | "error" | "again" | "undo" | "processing", completeBy?: number}} Attempt */
/** @typedef {{what: string, step?: string, attempt?: number, undo?: boolean}} Happening */

/** How an attempt ends by what happened to it. @type {Record<string, Attempt["end"]>} */
const ENDS = {
  "step-completed": "processed",
  "step-undone": "undo",
  "not-tried": "again",
  accepted: "again",
  expired: "again",
  "step-failed": "error",
};

/** @param {{history: {at: string, happened: Happening[]}[], steps: {name: string, completeBy: string | null}[]}} order @param {number} now @returns {Attempt[]} */
export function attempts({ history, steps }, now) {
  /** @type {Attempt[]} */
  const found = [];
  for (const { at, happened } of history) for (const each of happened) read(each, Date.parse(at), found, now);
  for (const { name, completeBy } of steps) {
    const open = found.findLast((each) => each.step === name && each.end === "processing");
    if (open && completeBy) open.completeBy = Date.parse(completeBy);
    else if (open) Object.assign(open, { to: Date.parse(history.at(-1)?.at ?? ""), end: "again" }); // in words alone
  }
  return found;
}

/** @param {Happening} happening @param {number} at @param {Attempt[]} found @param {number} now */
function read({ what, step = "", attempt = 0, undo = false }, at, found, now) {
  if (what === "step-started") found.push({ step, attempt, undo, from: at, to: now, end: "processing" });
  const end = ENDS[what];
  const last = end && found.findLast((each) => each.step === step && each.attempt === attempt);
  // An attempt that expires may be the one that the step is given up with: the second of the two says more.
  if (last && (last.end === "processing" || last.to === at)) Object.assign(last, { to: at, end });
}
