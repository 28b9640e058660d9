/** Asks for the operators' key. It stays in the memory of this console's tabs, and goes nowhere else but into the header of calls. */

import { h } from "../../../engine/pages/static/common/dom.js";
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
        h("h1", null, "Operators' console"),
        why && h("p", { class: "note wrong", role: "alert" }, why),
        h(
          "label",
          { class: "field" },
          h("span", null, "Operators' key"),
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
          h("span", null, "Your name"),
          h("small", { class: "muted" }, "It stands in the history of what you do."),
          h("input", { name: "name", value: operator(), autocomplete: "name", maxlength: 80 }),
        ),
        h("button", { class: "main" }, "Open the console"),
        h(
          "p",
          { class: "small muted" },
          "The key is kept until the last tab of this console is closed. On this machine ",
          h("code", null, "make run"),
          " prints it; on Azure see docs/operate.md.",
        ),
      ),
    );
  }

  draw();
  return { stop: () => {}, now: () => {}, redraw: draw };
}
