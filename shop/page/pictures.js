/** A small drawing for each kind of thing, in a tint of its own. */

import { h } from "../../engine/pages/static/common/dom.js";

const LEAF = "M14 46C12 26 26 14 50 14 50 38 38 50 18 46zM14 52C20 40 28 32 40 24";
const POT =
  "M16 28h28v12a12 12 0 0 1-12 12h-4a12 12 0 0 1-12-12zM44 32c8-2 10 2 6 10M16 32L8 26M24 28a6 6 0 0 1 12 0M30 18v4";
const CUP = "M14 26h30v10a14 14 0 0 1-14 14h-2a14 14 0 0 1-14-14zM44 28h4a6 6 0 0 1 0 12h-5M24 12v6M34 12v6";
/** @type {[RegExp, string][]} */
const KINDS = [
  [/^POT/, POT],
  [/^CUP/, CUP],
];
const TINTS = 5;

/** @param {string} sku @param {number} place */
export function picture(sku, place) {
  const [, path] = KINDS.find(([kind]) => kind.test(sku)) ?? [null, LEAF];
  return h(
    "svg",
    { class: `picture tint-${place % TINTS}`, viewBox: "0 0 64 64", "aria-hidden": "true" },
    h("path", {
      d: path,
      fill: "none",
      stroke: "currentColor",
      "stroke-width": 2,
      "stroke-linecap": "round",
      "stroke-linejoin": "round",
    }),
  );
}
