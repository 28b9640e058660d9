/** Where the shop begins: which page is shown, and what stands around it. */

import { h, render, the, tick } from "../../engine/pages/static/common/dom.js";
import { applyTheme, themeSwitch } from "../../engine/pages/static/common/theme.js";
import { basketPage } from "./basket.js";
import { orderPage } from "./order.js";
import { ordersPage } from "./orders.js";
import { productsPage } from "./products.js";
import { basket, count } from "./store.js";

/** @typedef {{show: (...children: any[]) => void, say: (text: string) => void, changed: () => void}} Place */

/** @type {{path: RegExp, title: string, open: (place: Place, ...args: string[]) => (() => void) | void}[]} */
const PAGES = [
  { path: /^\/$/, title: "Tea shop", open: productsPage },
  { path: /^\/basket$/, title: "Your basket", open: basketPage },
  { path: /^\/orders$/, title: "Your orders", open: ordersPage },
  { path: /^\/orders\/([\w-]+)$/, title: "Your order", open: orderPage },
];
const main = the("#main");
let leave;

/** @type {Place} */
const place = {
  show: (...children) => render(main, ...children),
  say: (text) => render(the("#said"), text),
  changed: around,
};

function around() {
  const inBasket = count(basket().lines);
  render(
    the("#top"),
    h("a", { class: "brand", href: "#/" }, "Tea shop"),
    h(
      "nav",
      { "aria-label": "Shop" },
      h("a", { href: "#/orders" }, "Your orders"),
      h(
        "a",
        { href: "#/basket", id: "to-basket" },
        "Basket",
        h("span", { class: "count" }, inBasket, h("span", { class: "for-readers" }, " in it")),
      ),
    ),
  );
  render(the("#foot"), h("a", { href: "/console" }, "Operators' console"), themeSwitch(around));
}

function open() {
  if (location.hash && !location.hash.startsWith("#/")) return;
  leave?.();
  const path = location.hash.slice(1) || "/";
  const page = PAGES.find((candidate) => candidate.path.test(path)) ?? PAGES[0];
  document.title = page.title;
  render(main);
  leave = page.open(place, ...(page.path.exec(path)?.slice(1) ?? []));
  scrollTo(0, 0);
  around();
}

function skip(event) {
  event.preventDefault();
  main.focus();
}

applyTheme();
addEventListener("hashchange", () => {
  open();
  main.focus({ preventScroll: true });
});
addEventListener("storage", around);
the(".skip").addEventListener("click", skip);
setInterval(tick, 1000);
open();
