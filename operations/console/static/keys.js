/** What the keyboard does; nothing while somebody types. */

import { h, render } from "../../../engine/pages/static/common/dom.js";
import { text } from "../../../engine/pages/static/common/words.js";

const HELP = [
  ["/", text("console.keys.search")],
  ["j, k", text("console.keys.row")],
  [text("console.keys.enter"), text("console.keys.open")],
  ["a", text("console.keys.act")],
  ["r", text("console.keys.again")],
  [text("console.keys.escape"), text("console.keys.back")],
  ["g", text("console.keys.overview")],
  [text("console.keys.digits", { first: 1, last: 9 }), text("console.keys.page")],
  ["?", text("console.keys.help")],
];

/** @param {KeyboardEvent} event @param {import("./main.js").Place} place @param {() => string} list the address of the last list @param {string[]} links of the pages on top */
export function onKey(event, place, list, links) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, textarea, select, dialog")) return;
  const page = links[Number(event.key) - 1];
  const does = {
    ...(page && { [event.key]: () => (location.hash = `#${page}`) }),
    "/": () => (location.hash = "#/search"),
    j: () => move(1),
    k: () => move(-1),
    a: () => /** @type {HTMLElement | null} */ (document.querySelector("[data-first]"))?.click(),
    r: place.again,
    Escape: () => (location.hash = list()),
    g: () => (location.hash = "#/"),
    "?": help,
  }[event.key];
  if (!does) return;
  event.preventDefault();
  does();
}

/** Move the focus among the rows of a list. @param {number} by */
function move(by) {
  const rows = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("[data-row]")]);
  const at = rows.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  rows[Math.min(Math.max(at + by, 0), rows.length - 1)]?.focus();
}

function help() {
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-label", text("console.keys.title"));
  render(
    dialog,
    h("h2", null, text("console.keys.title")),
    h(
      "dl",
      { class: "facts" },
      HELP.map(([key, what]) => [h("dt", null, h("kbd", null, key)), h("dd", null, what)]),
    ),
    h("button", { onClick: () => dialog.close() }, text("console.keys.close")),
  );
  dialog.onclose = () => dialog.remove();
  document.body.append(dialog);
  dialog.showModal();
}
