/** Asks for the operators' key. It stays in the memory of this console's tabs, and goes nowhere else but into the header of calls. */

import { h } from "../../../engine/pages/static/common/dom.js";
import { rich, text } from "../../../engine/pages/static/common/words.js";
import { operator, setKey, setOperator } from "./session.js";

/** @param {import("./main.js").Place} place @param {string} why @param {() => void} given @returns {import("./main.js").Open} */
export function keyPage(place, why, given) {
  function enter(event) {
    event.preventDefault();
    const { key, name } = Object.fromEntries(new FormData(event.target));
    if (!key) return;
    setKey(String(key));
    setOperator(String(name).trim());
    given();
  }

  function draw() {
    place.show(
      h(
        "form",
        { class: "key", onSubmit: enter },
        h("h1", null, text("console.key.title")),
        why && h("p", { class: "note wrong", role: "alert" }, why),
        h(
          "label",
          { class: "field" },
          h("span", null, text("console.key.key")),
          h("input", {
            name: "key",
            type: "password",
            autocomplete: "off",
            required: true,
            made: (node) => node.focus(),
          }),
        ),
        h(
          "label",
          { class: "field" },
          h("span", null, text("console.key.name")),
          h("small", { class: "muted" }, text("console.key.name-hint")),
          h("input", { name: "name", value: operator(), autocomplete: "name", maxlength: 80 }),
        ),
        h("button", { class: "main" }, text("console.key.open")),
        h(
          "p",
          { class: "small muted" },
          rich("console.key.hint", { command: h("code", null, "make run"), page: "docs/operations/deploy.md" }),
        ),
      ),
    );
  }

  draw();
  return { stop: () => {}, now: () => {}, redraw: draw };
}
