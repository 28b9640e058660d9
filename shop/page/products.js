/** What the shop sells. */

import { call } from "../../engine/pages/static/common/api.js";
import { h } from "../../engine/pages/static/common/dom.js";
import { picture } from "./pictures.js";
import { money, put, quantityOf } from "./store.js";

let known;

/** @param {import("./main.js").Place} place */
export function productsPage(place) {
  let left = false;
  const show = (...children) => {
    if (!left) place.show(h("h1", null, "Good tea, sent today"), ...children);
  };
  const draw = () => show(h("ul", { class: "products" }, known.map(product)));

  function product(tea, number) {
    const inBasket = quantityOf(tea.sku);
    return h(
      "li",
      { class: "product", key: tea.sku },
      picture(tea.sku, number),
      h("div", { class: "about" }, h("h2", null, tea.name), h("p", { class: "muted" }, tea.description)),
      h(
        "div",
        { class: "buy" },
        h("strong", null, money(tea.cents, tea.currency)),
        h(
          "button",
          { class: inBasket ? "" : "main", onClick: () => add(tea) },
          "Add",
          h("span", { class: "for-readers" }, ` ${tea.name}`),
          inBasket > 0 && h("span", { class: "count", "aria-hidden": "true" }, inBasket),
        ),
      ),
    );
  }

  function add(tea) {
    put(tea, quantityOf(tea.sku) + 1);
    place.say(`${tea.name} added; ${quantityOf(tea.sku)} in the basket`);
    place.changed();
    draw();
  }

  async function load() {
    show(h("div", { class: "skeleton" }), h("div", { class: "skeleton" }));
    try {
      known ??= (await call("/api/products")).data.products.map(read);
      draw();
    } catch (fault) {
      const problem = /** @type {import("../../engine/pages/static/common/api.js").Failure} */ (fault);
      show(
        h(
          "div",
          { class: "note wrong", role: "alert" },
          h("p", null, problem.message),
          h("button", { onClick: load }, "Try again"),
        ),
      );
    }
  }

  load();
  return () => void (left = true); // an answer that comes later is shown on no other page
}

/** @returns {Omit<import("./store.js").Line, "quantity"> & {description: string}} */
function read({ sku, name, description, price }) {
  return { sku, name, description, cents: Math.round(Number(price.amount) * 100), currency: price.currency };
}
