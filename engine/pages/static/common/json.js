/** JSON whose numbers stay what they are: one that JavaScript would change is kept as it is written. */

/** The digits of a number that count: equal for 100, 1e2 and 100.0. @param {string} number */
const digits = (number) =>
  number
    .replace(/e.*/i, "")
    .replace(/[-.]/g, "")
    .replace(/^0+|0+$/g, "");

/** Whether JavaScript has another number for this one, as for most above 2^53. @param {string} source */
export const loses = (source) => digits(String(Number(source))) !== digits(source);

/** Whether JavaScript writes this number in another way, as 100 for 1e2. @param {string} source */
export const rewrites = (source) => String(Number(source)) !== source;

/**
 * The value of a JSON text, as `JSON.parse` has it; `JSON.stringify` writes the numbers that are kept as they were.
 *
 * Browsers from before 2025 do not tell how a number was written. There, numbers are rounded.
 * @param {string} text @param {(source: string) => boolean} keeps which numbers are kept as they are written
 */
export function parse(text, keeps = loses) {
  const json = /** @type {any} */ (JSON);
  return json.parse(text, (_, value, context) =>
    typeof value === "number" && context?.source && keeps(context.source) ? json.rawJSON(context.source) : value,
  );
}
