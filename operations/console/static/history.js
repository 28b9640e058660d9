/** What happened to an order, the newest first. */

import { h } from "../../../engine/pages/static/common/dom.js";
import { text } from "../../../engine/pages/static/common/words.js";
import { at, cell, head, localized } from "./parts.js";
import { eventName, event as meaning } from "./words.js";

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
    h("h2", { id: "history" }, text("console.history.title")),
    h(
      "label",
      { class: "quiet" },
      h("input", {
        type: "checkbox",
        checked: view.failuresOnly,
        onChange: change("failuresOnly", !view.failuresOnly),
      }),
      " ",
      text("console.history.failures-only"),
    ),
    h(
      "table",
      { class: "rows" },
      head(["at", "what", "detail", "who"]),
      h(
        "tbody",
        null,
        shown.map((entry) =>
          h(
            "tr",
            { key: String(entry.number), class: meaning(entry.event).changesNothing ? "grey" : "" },
            cell("at", null, at(entry.at)),
            cell("what", null, h("strong", null, eventName(entry.event))),
            cell("detail", null, localized(entry.detail)),
            cell("who", { class: "muted" }, entry.actor),
          ),
        ),
      ),
    ),
    found.length > shown.length &&
      h("button", { onClick: change("all", true) }, text("console.history.show-all", { count: found.length })),
  );
}
