/** What happened to an order, the newest first. */

import { h } from "../../../engine/pages/static/common/dom.js";
import { at, many, localized, head } from "./parts.js";
import { event as meaning } from "./words.js";

const NEWEST = 50;
/** @param {any} order @param {{failuresOnly: boolean, all: boolean}} view @param {() => void} redraw */
export function historyOf({ history }, view, redraw) {
  const found = history
    .map((entry, number) => ({ ...entry, number }))
    .filter(({ event }) => !view.failuresOnly || meaning(event).isFailure)
    .reverse();
  const shown = view.all ? found : found.slice(0, NEWEST);
  const change = (name, value) => () => {
    view[name] = value;
    redraw();
  };
  return h(
    "section",
    { "aria-labelledby": "history" },
    h("h2", { id: "history" }, "History"),
    h(
      "label",
      { class: "quiet" },
      h("input", {
        type: "checkbox",
        checked: view.failuresOnly,
        onChange: change("failuresOnly", !view.failuresOnly),
      }),
      " Only what went wrong",
    ),
    h(
      "table",
      { class: "rows" },
      head(["At", "What", "Detail", "Who"]),
      h(
        "tbody",
        null,
        shown.map((entry) =>
          h(
            "tr",
            { key: String(entry.number), class: meaning(entry.event).changesNothing ? "grey" : "" },
            h("td", { "data-name": "At" }, at(entry.at)),
            h("td", { "data-name": "What" }, h("strong", null, entry.event)),
            h("td", { "data-name": "Detail" }, localized(entry.detail)),
            h("td", { "data-name": "Who", class: "muted" }, entry.actor),
          ),
        ),
      ),
    ),
    found.length > shown.length &&
      h("button", { onClick: change("all", true) }, `Show all ${many(found.length, "entry", "entries")}`),
  );
}
