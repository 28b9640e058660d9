/** What was ordered, without who ordered it; that is shown of one order at a time, to whoever says why. */

import { h } from "../../../engine/pages/static/common/dom.js";
import { text } from "../../../engine/pages/static/common/words.js";
import { confirm } from "./dialog.js";
import { send } from "./session.js";
import { actionsOn } from "./words.js";

/**
 * @typedef {{revealed?: any}} Shown what the page shows of it, until it is left
 * @param {{orderId: string, payload: any, hides: boolean, erased: boolean}} order
 * @param {Shown} view @param {import("./main.js").Place} place @param {() => void} redraw
 */
export function ordered(order, view, place, redraw) {
  const actions = order.hides && !view.revealed ? actionsOn("personal") : [];
  return h(
    "section",
    { "aria-labelledby": "bought" },
    h("h2", { id: "bought" }, text("console.ordered.title")),
    order.erased && h("p", { class: "muted" }, text("console.ordered.erased")),
    order.hides && !view.revealed && h("p", { class: "muted" }, text("console.ordered.hidden")),
    actions.map((action) =>
      h(
        "p",
        { key: action.name },
        h("button", { onClick: () => reveal(action, order, view, place, redraw) }, action.title),
      ),
    ),
    h("pre", { class: "wide", tabindex: 0 }, JSON.stringify(view.revealed ?? order.payload, null, 2)),
  );
}

/** @param {import("./words.js").Action} action @param {{orderId: string}} order @param {Shown} view */
function reveal({ name, title, button, effect }, { orderId }, view, place, redraw) {
  confirm({
    title,
    act: button,
    effect,
    run: async ({ operator, note }) => {
      const { payload } = await send(`/api/operator/orders/${orderId}/${name}`, { operator, note });
      view.revealed = payload;
      redraw();
    },
    after: place.again,
  });
}
