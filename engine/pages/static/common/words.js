/** The words of the pages: texts of the catalogue, in the language of the app. */

import WORDS from "../../../words/en.json" with { type: "json" };

/** @typedef {keyof typeof WORDS} Entry */
/** @typedef {Entry extends infer Name ? Name extends `${infer Base}.one` | `${infer Base}.other` ? Base : Name : never} Key */
/** @typedef {Record<string, string | number>} Values */

/** The tag of the language, by which numbers and times are written too. */
export const LOCALE = WORDS["page.locale"];

const VALUE = /\{(\w+)\}/;

/**
 * The text of this key with its values; of a text with the forms `KEY.one` and `KEY.other`, the form for `count`.
 * Raises `Error` for a key that the catalogue does not have, and for a value that is not given.
 * @param {Key} key @param {Values} [values]
 */
export const text = (key, values = {}) => rich(key, values).join("");

/**
 * The text of this key as children of an element: its values may be elements. Raises `Error` as `text` does.
 * @template [Value=import("./dom.js").Child] @param {Key} key @param {Record<string, Value | string | number>} [values]
 * @returns {(Value | string)[]}
 */
export const rich = (key, values = {}) =>
  formOf(key, values.count)
    .split(VALUE)
    .map((part, place) => (place % 2 ? valueOf(values, part, key) : part))
    .filter((part) => part !== "");

/**
 * The word for a name of the API, such as the mode of a fault; the name itself, if another version of the app knows it.
 * @param {string} group the beginning of the keys @param {string} name
 */
export const named = (group, name) => /** @type {Record<string, string>} */ (WORDS)[`${group}.${name}`] ?? name;

function formOf(key, count) {
  const form = `${key}.other` in WORDS ? `${key}.${count === 1 ? "one" : "other"}` : key;
  const found = /** @type {Record<string, string>} */ (WORDS)[form];
  if (found === undefined) throw new Error(`There are no words for ${key}`);
  return found;
}

function valueOf(values, name, key) {
  if (!(name in values)) throw new Error(`${key} has no ${name}`);
  return typeof values[name] === "number" ? values[name].toLocaleString(LOCALE) : values[name];
}
