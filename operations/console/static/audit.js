/** What operators did to orders, the newest first. */

import { h } from "../../../engine/pages/static/common/dom.js";
import { csv, save } from "./csv.js";
import { live } from "./live.js";
import { at, head, many, nothing, text } from "./parts.js";
import { ask } from "./session.js";

const EVERY_SECONDS = 30;
const LISTED = 200;

/** @typedef {{at: string, orderId: string, operator: string, event: string, detail: string}} Entry */

/** @param {import("./main.js").Place} place @returns {import("./main.js").Open} */
export function auditPage(place) {
  let wanted = 1;

  async function load(signal) {
    let [entries, unreadable] = [/** @type {Entry[]} */ ([]), /** @type {string[]} */ ([])];
    let continuation = "";
    for (let page = 0; page < wanted && continuation !== null; page += 1) {
      const more = continuation && `&continuation=${encodeURIComponent(continuation)}`;
      const found = await ask(`/api/operator/audit?limit=${LISTED}${more}`, { signal });
      [entries, unreadable] = [
        [...entries, ...found.entries],
        [...unreadable, ...found.unreadable],
      ];
      continuation = found.continuation ?? null;
    }
    return { entries, unreadable, more: continuation !== null };
  }

  const draw = ({ entries, unreadable, more }) => [
    h("h1", null, "What operators did"),
    entries.length
      ? table(entries)
      : nothing(
          "Nobody has done anything yet",
          "What operators do to orders is listed here, with their names and notes.",
        ),
    unreadable.length > 0 && h("p", { class: "note wrong" }, `${many(unreadable.length, "row")} cannot be read.`),
    h(
      "p",
      { class: "buttons" },
      more && h("button", { onClick: () => ((wanted += 1), page.now()) }, "Show more"),
      entries.length > 0 && h("button", { onClick: () => save("actions.csv", asCsv(entries)) }, "Save as CSV"),
    ),
  ];

  const page = live(place, { title: "What operators did", load, draw, every: () => EVERY_SECONDS });
  return page;
}

const nameOf = (/** @type {Entry} */ { operator }) => operator.replace(/^operator\//, "");

/** @param {Entry[]} entries */
export const asCsv = (entries) =>
  csv(
    ["at", "operator", "what", "order", "note"],
    entries.map((entry) => [entry.at, nameOf(entry), entry.event, entry.orderId, entry.detail]),
  );

/** @param {Entry[]} entries */
export const table = (entries) =>
  h("table", { class: "rows" }, head(["At", "Who", "What", "Order", "Note"]), h("tbody", null, entries.map(row)));

/** @param {Entry} entry */
function row(entry) {
  return h(
    "tr",
    { key: `${entry.at} ${entry.orderId} ${entry.event}` },
    h("td", { "data-name": "At" }, at(entry.at)),
    h("td", { "data-name": "Who" }, nameOf(entry)),
    h("td", { "data-name": "What" }, entry.event),
    h(
      "td",
      { "data-name": "Order" },
      h("a", { href: `#/orders/${entry.orderId}`, "data-row": true }, h("code", null, entry.orderId)),
    ),
    h("td", { "data-name": "Note" }, text(entry.detail)),
  );
}
