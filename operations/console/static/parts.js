/** Small things that several pages show. */

import { h } from "../../../engine/pages/static/common/dom.js";
import { ago, clock, full, isWritten } from "../../../engine/pages/static/common/time.js";
import { LOCALE, text } from "../../../engine/pages/static/common/words.js";

const COPIED_FOR = 2_000;

/** @typedef {import("../../../engine/pages/static/common/words.js").Key extends infer Name ? Name extends `console.column.${infer Column}` ? Column : never : never} Column */

/** A number that may be only the least. @param {{count: number, atLeast?: boolean}} count */
export const atLeast = ({ count, atLeast: more }) => `${count.toLocaleString(LOCALE)}${more ? "+" : ""}`;

/** The number that a tab shows before its name; none of nothing. @param {{count: number, atLeast?: boolean}} counted */
export const numbered = (counted) => (counted.count === 0 ? "" : `(${atLeast(counted)}) `);

/** When something was, with all of it on hover. @param {string} time */
export const at = (time) => h("time", { datetime: time, title: full(time) }, clock(time));

/** How long ago. @param {string} time */
export const since = (time) => h("time", { datetime: time, title: full(time), live: () => ago(time) });

/** The address of a list. @param {Record<string, string | null | undefined>} filter */
export function listOf(filter) {
  const given = Object.entries(filter).filter(([, value]) => value);
  return `#/orders?${new URLSearchParams(/** @type {[string, string][]} */ (given))}`;
}

/**
 * A long text, of which the beginning is shown until all is wanted.
 * @param {string} long @param {number} [shown] @param {(part: string) => any} [of] how a part of it is shown
 */
export const folded = (long, shown = 300, of = (part) => part) =>
  long.length <= shown
    ? of(long)
    : h("details", null, h("summary", null, of(long.slice(0, shown)), "…"), h("span", null, of(long.slice(shown))));

/** What there is of these, one after the other. @param {string} between @param {...any} parts */
export const joined = (between, ...parts) =>
  parts.filter(Boolean).flatMap((part, place) => (place ? [between, part] : [part]));

const TIME = /(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC/;

/** What the app says in words, its times in the reader's zone. @param {string} words @param {number} [shown] */
export const localized = (words, shown) => folded(words, shown, timed);

const timed = (/** @type {string} */ words) =>
  words.split(TIME).map((part, place) => (place % 2 ? timeOf(part) : part));

/** A time of the app; a text from outside that only looks like one stays as it is. @param {string} written */
function timeOf(written) {
  const time = `${written.replace(" ", "T")}Z`;
  return isWritten(time) ? at(time) : `${written} UTC`;
}

/** A button that copies, also on a page that came over plain HTTP. @param {string} label @param {() => string} value */
export function copier(label, value) {
  const copy = async (event) => {
    const button = event.currentTarget;
    if (navigator.clipboard) await navigator.clipboard.writeText(value());
    else byHand(value());
    const before = button.textContent;
    button.textContent = text("console.parts.copied");
    setTimeout(() => (button.textContent = before), COPIED_FOR);
  };
  return h("button", { class: "plain small", "aria-label": label, onClick: copy }, label);
}

function byHand(value) {
  const area = document.createElement("textarea");
  area.value = value;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

/** A link that leaves the console; nothing where it leads nowhere. @param {string | undefined} href @param {string} name */
export const outside = (href, name) =>
  href && h("a", { class: "outside", href, target: "_blank", rel: "noopener" }, name);

/** @param {string} title @param {...any} hint */
export const nothing = (title, ...hint) => h("div", { class: "empty" }, h("h2", null, title), h("p", null, hint));

/** What a column of a table is called. @param {Column} column */
const nameOf = (column) => text(`console.column.${column}`);

/** The head of a table. @param {Column[]} columns @param {string[]} [others] names of further ones */
export const head = (columns, others = []) =>
  h(
    "thead",
    null,
    h(
      "tr",
      null,
      [...columns.map(nameOf), ...others].map((name) => h("th", { scope: "col" }, name)),
    ),
  );

/** A cell in the body of a table. @param {Column} column @param {Record<string, any> | null} props @param {...any} children */
export const cell = (column, props, ...children) =>
  h("td", { "data-column": column, "data-name": nameOf(column), ...props }, children);
