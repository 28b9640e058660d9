/** What an operator found out about a step in doubt. */

import { text } from "../../../engine/pages/static/common/words.js";
import { parsed } from "./answers.js";
import { LONG } from "./dialog.js";

export const NOT_DONE = text("console.outcome.not-done");
export const DONE = text("console.outcome.done");
export const LATE = text("console.outcome.late");

/** The fields of a dialog that ask for it. @returns {Partial<import("./dialog.js").Question>} */
export const outcomeFields = () => ({
  choices: [{ name: "outcome", label: text("console.outcome.found"), choices: [NOT_DONE, DONE, LATE] }],
  field: { name: "answer", label: text("console.outcome.answer"), type: LONG, value: "{}" },
});

/** The outcome as the app takes it. Raises `Problem` for an answer that is no JSON object. @param {Record<string, string>} given */
export function outcomeOf({ outcome, answer }) {
  if (outcome === DONE) return { wasDone: true, answer: parsed(answer) };
  return { wasDone: false, ...(outcome === LATE && { confirmLateEffect: true }) };
}
