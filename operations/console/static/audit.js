/** What operators did to orders, the newest first. */

import { h } from "../../../engine/pages/static/common/dom.js";
import { text } from "../../../engine/pages/static/common/words.js";
import { csv, fileOf, save } from "./csv.js";
import { live } from "./live.js";
import { at, cell, folded, head, nothing } from "./parts.js";
import { ask } from "./session.js";
import { eventName } from "./words.js";

const EVERY_SECONDS = 30;
const LISTED = 200;

/** @typedef {{at: string, orderId: string | null, operator: string, event: string, detail: string}} Entry */

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
    h("h1", null, text("console.audit.title")),
    entries.length ? table(entries) : nothing(text("console.audit.none"), text("console.audit.none-hint")),
    unreadable.length > 0 &&
      h("p", { class: "note wrong" }, text("console.audit.unreadable", { count: unreadable.length })),
    h(
      "p",
      { class: "buttons" },
      more && h("button", { onClick: () => ((wanted += 1), page.now()) }, text("console.parts.show-more")),
      entries.length > 0 &&
        h(
          "button",
          { onClick: () => save(fileOf("actions", entries.length, !more && !unreadable.length), asCsv(entries)) },
          text("console.parts.save-csv"),
        ),
    ),
  ];

  const page = live(place, { title: text("console.audit.title"), load, draw, every: () => EVERY_SECONDS });
  return page;
}

const nameOf = (/** @type {Entry} */ { operator }) => operator.replace(/^operator\//, "");

/** @param {Entry[]} entries */
export const asCsv = (entries) =>
  csv(
    [
      text("console.csv.at"),
      text("console.csv.operator"),
      text("console.csv.what"),
      text("console.csv.order"),
      text("console.csv.note"),
    ],
    entries.map((entry) => [entry.at, nameOf(entry), eventName(entry.event), entry.orderId ?? "", entry.detail]),
  );

/** @param {Entry[]} entries */
export const table = (entries) =>
  h("table", { class: "rows" }, head(["at", "who", "what", "order", "note"]), h("tbody", null, entries.map(row)));

/** @param {Entry} entry */
function row(entry) {
  return h(
    "tr",
    { key: `${entry.at} ${entry.orderId} ${entry.event}` },
    cell("at", null, at(entry.at)),
    cell("who", null, nameOf(entry)),
    cell("what", null, eventName(entry.event)),
    cell(
      "order",
      null,
      entry.orderId
        ? h("a", { href: `#/orders/${entry.orderId}`, "data-row": true }, h("code", null, entry.orderId))
        : text("console.audit.all-orders"),
    ),
    cell("note", null, folded(entry.detail)),
  );
}
