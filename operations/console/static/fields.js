/** The fields of the dialog that asks for an action, and what is sent of them. */

import { sentOf, zone } from "../../../engine/pages/static/common/time.js";
import { text } from "../../../engine/pages/static/common/words.js";
import { parsed } from "./answers.js";
import { LONG } from "./dialog.js";

const YES = "true";
const NO = "false";

/** By kind, the form of an argument in a dialog. */
const FORMS = {
  step: ({ steps }) => ({ choices: steps }),
  choice: ({ choices }) => ({ choices }),
  flag: () => ({
    choices: [NO, YES],
    words: { [NO]: text("console.fields.no"), [YES]: text("console.fields.yes") },
  }),
  object: () => ({ type: LONG }),
  time: ({ label }) => ({ type: "datetime-local", label: text("console.fields.time", { label, zone: zone() }) }),
  text: () => ({ type: "text" }),
};
/** By kind, what is sent of it. */
const SENT = {
  step: (typed) => typed,
  choice: (typed) => typed,
  flag: (typed) => typed === YES,
  object: (typed) => parsed(typed),
  time: (typed) => sentOf(typed),
  text: (typed) => typed,
};

/**
 * The fields that ask for the arguments of an action. A step is one of those that it can concern.
 * @param {import("./words.js").Argument[]} declared @param {string[]} steps
 * @returns {import("./dialog.js").Field[]}
 */
export const fieldsOf = (declared, steps) =>
  declared.map(({ name, label, kind, choices, isRequired }) => ({
    name,
    label,
    isOptional: !isRequired,
    ...FORMS[kind]({ label, choices, steps }),
  }));

/**
 * The arguments as the app takes them, without those that were left empty.
 * Raises `Problem` for a text that is no JSON object where one is wanted.
 * @param {import("./words.js").Argument[]} declared @param {Record<string, string>} given
 */
export const argumentsOf = (declared, given) =>
  Object.fromEntries(
    declared.filter(({ name }) => given[name]).map(({ name, kind }) => [name, SENT[kind](given[name])]),
  );
