/** What an operator found out about a step in doubt. */

import { parsed } from "./answers.js";
import { LONG } from "./dialog.js";

export const NOT_DONE = "It was not done";
export const DONE = "It was done";
export const LATE = "It was not done, and I confirm that a call may still take effect";

/** The fields of a dialog that ask for it. @returns {Partial<import("./dialog.js").Question>} */
export const outcomeFields = () => ({
  choices: [{ name: "outcome", label: "What you found out", choices: [NOT_DONE, DONE, LATE] }],
  field: { name: "answer", label: "If it was done: its answer, as JSON", type: LONG, value: "{}" },
});

/** The outcome as the app takes it. Raises `Problem` for an answer that is no JSON object. @param {Record<string, string>} given */
export function outcomeOf({ outcome, answer }) {
  if (outcome === DONE) return { wasDone: true, answer: parsed(answer) };
  return { wasDone: false, ...(outcome === LATE && { confirmLateEffect: true }) };
}
