/** Where the console begins: which page is shown, and what stands around it. */

import { h, render, the, tick } from "../common/dom.js";
import { applyTheme, themeSwitch } from "../common/theme.js";
import { isUtc, setUtc, zone } from "../common/time.js";
import { alertsPage } from "./alerts.js";
import { watchFaults } from "./banner.js";
import { faultsPage } from "./faults.js";
import { firstPage } from "./first.js";
import { keyPage } from "./key.js";
import { onKey } from "./keys.js";
import { listPage } from "./list.js";
import { orderPage } from "./order.js";
import { poisonPage } from "./poison.js";
import { searchPage } from "./search.js";
import { forgetKey, hasKey } from "./session.js";

/**
 * What a page has: a place to show itself, a voice, and the way to ask for the key.
 * @typedef {{show: (...children: any[]) => void, say: (text: string) => void, askKey: (why: string) => void, again: () => void}} Place
 * @typedef {{stop: () => void, now: () => void, redraw: () => void}} Open
 */

/** @type {{path: RegExp, name: string, link?: string, open: (place: Place, query: URLSearchParams, ...args: string[]) => Open}[]} */
const PAGES = [
  { path: /^\/$/, name: "Overview", link: "/", open: firstPage },
  { path: /^\/orders$/, name: "Orders", link: "/orders", open: listPage },
  { path: /^\/orders\/([\w-]+)$/, name: "Order", open: orderPage },
  { path: /^\/alerts$/, name: "Alerts", link: "/alerts", open: alertsPage },
  { path: /^\/poison$/, name: "Poison", link: "/poison", open: poisonPage },
  { path: /^\/search$/, name: "Search", link: "/search", open: searchPage },
  { path: /^\/faults$/, name: "Faults", link: "/faults", open: faultsPage },
];
const main = the("#main");
/** Where the page of the business is, if it has one, and what it is called. */
const { page, title } = the("#foot").dataset;
const scrolled = new Map();
/** @type {Open | undefined} */
let opened;
let shownAt = "";
let banner;

/** @type {Place} */
const place = {
  show: (...children) => {
    render(main, ...children);
    if (scrolled.has(shownAt) && main.scrollHeight > scrolled.get(shownAt)) {
      scrollTo(0, scrolled.get(shownAt));
      scrolled.delete(shownAt);
    }
  },
  say: (text) => render(the("#said"), text),
  askKey,
  again: () => opened?.now(),
};

function askKey(why) {
  forgetKey();
  opened?.stop();
  banner?.stop();
  banner = undefined;
  opened = keyPage(place, why, open);
  around("");
}

function around(name) {
  const pages = hasKey() ? PAGES.filter(({ link }) => link) : [];
  render(
    the("#top"),
    h("a", { class: "brand", href: "#/" }, "Console"),
    h(
      "nav",
      { "aria-label": "Console" },
      pages.map((each) =>
        h("a", { href: `#${each.link}`, "aria-current": each.name === name ? "page" : null }, each.name),
      ),
    ),
  );
  render(
    the("#foot"),
    h(
      "span",
      null,
      page && [h("a", { href: page }, title), " "],
      hasKey() && h("button", { class: "plain", onClick: () => askKey("") }, "Forget the key"),
    ),
    h("span", { class: "quiet" }, "Keys: press ", h("kbd", null, "?")),
    h(
      "label",
      { class: "quiet" },
      h("input", { type: "checkbox", checked: isUtc(), onChange: switchZone }),
      ` Times in UTC (now ${zone()})`,
    ),
    themeSwitch(() => around(name)),
  );
}

function switchZone(event) {
  setUtc(event.target.checked);
  opened?.redraw();
  around(document.title);
}

function open() {
  if (location.hash && !location.hash.startsWith("#/")) return;
  if (!hasKey()) return askKey("");
  if (opened) scrolled.set(shownAt, scrollY);
  opened?.stop();
  shownAt = location.hash;
  const [path, query] = (location.hash.slice(1) || "/").split("?");
  const found = PAGES.find((each) => each.path.test(path)) ?? PAGES[0];
  document.title = found.name;
  render(main);
  if (!scrolled.has(shownAt)) scrollTo(0, 0);
  opened = found.open(place, new URLSearchParams(query), ...(found.path.exec(path)?.slice(1) ?? []));
  banner ??= watchFaults(the("#banner"));
  around(found.name);
}

applyTheme();
history.scrollRestoration = "manual";
addEventListener("hashchange", open);
addEventListener("keydown", (event) => onKey(event, place));
the(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
setInterval(() => !document.hidden && tick(), 1000);
open();
