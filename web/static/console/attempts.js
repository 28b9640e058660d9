/** Reads from an order's history when each attempt began, and how it ended. */

/** @typedef {{step: string, attempt: number, undo: boolean, from: number, to: number, end: "processed" | "error" | "again" | "undo" | "processing", completeBy?: number}} Attempt */

const BEGAN = /^(undo of )?(\S+) attempt (\d+) started/;
const ENDS = /** @type {const} */ ([
  [/^(?:undo of )?(\S+) completed by attempt/, "processed"],
  [/^(\S+) undone by attempt/, "undo"],
  [/^(?:undo of )?(\S+)(?: attempt \d+)? (?:timed out|was not tried|came to nothing)/, "again"],
  [/^(\S+): /, "error"],
]);
const ENDED = /** @type {const} */ ({ Completed: "processed", Undone: "undo", Failed: "error" });
const NOTES = new Set(["reply-refused"]);

/** @param {{history: {at: string, event: string, detail: string}[], steps: {name: string, state: string, completeBy: string | null}[]}} order @param {number} now @returns {Attempt[]} */
export function attempts({ history, steps }, now) {
  /** @type {Attempt[]} */
  const found = [];
  for (const { at, event, detail } of history) {
    if (NOTES.has(event)) continue; // an attempt goes on after these
    for (const part of detail.split(/[;,] /)) read(part, Date.parse(at), found, now);
  }
  const last = history.at(-1);
  for (const { name, state, completeBy } of steps) {
    const open = found.findLast((each) => each.step === name && each.end === "processing");
    if (!open) continue;
    if (completeBy) open.completeBy = Date.parse(completeBy);
    // The entry of an order's end tells of its reason, and not of the step that ended last.
    else Object.assign(open, { to: Date.parse(last.at), end: ENDED[state] ?? "again" });
  }
  return found;
}

function read(part, at, found, now) {
  const began = BEGAN.exec(part);
  if (began)
    return void found.push({
      step: began[2],
      attempt: Number(began[3]),
      undo: Boolean(began[1]),
      from: at,
      to: now,
      end: "processing",
    });
  for (const [pattern, end] of ENDS) {
    const step = pattern.exec(part)?.[1];
    const last = found.findLast((each) => each.step === step && each.end === "processing");
    if (last) return void Object.assign(last, { to: at, end });
  }
}
