/** The orders that were placed in this browser. */

import { h } from "../../engine/pages/static/common/dom.js";
import { clock } from "../../engine/pages/static/common/time.js";
import { mine, things, total } from "./store.js";

/** @param {import("./main.js").Place} place */
export function ordersPage(place) {
  const orders = mine();
  place.show(
    h("h1", null, "Your orders"),
    orders.length ? h("ul", { class: "orders" }, orders.map(order)) : none(),
    orders.length > 0 &&
      h("p", { class: "muted small" }, "This browser remembers your orders. Nobody else can list them."),
  );
}

/** @param {import("./store.js").Mine} order */
const order = ({ id, at, lines, said: line }) =>
  h(
    "li",
    { key: id },
    h(
      "a",
      { href: `#/orders/${id}` },
      h("span", null, lines.map((line) => `${line.quantity} × ${line.name}`).join(", ")),
      h("span", { class: "muted" }, `${clock(at)} · ${total(lines)} · ${things(lines)}`),
      line && h("span", { class: "small" }, line),
    ),
  );

const none = () =>
  h(
    "div",
    { class: "empty" },
    h("p", null, "You have not ordered anything in this browser yet."),
    h("p", null, h("a", { href: "#/" }, "Look at our teas")),
  );
