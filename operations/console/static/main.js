/** Where the console begins: which page is shown, and what stands around it. */

import { h, render, the, tick } from "../../../engine/pages/static/common/dom.js";
import { applyTheme, themeSwitch } from "../../../engine/pages/static/common/theme.js";
import { isUtc, offset, setUtc } from "../../../engine/pages/static/common/time.js";
import { rich, text } from "../../../engine/pages/static/common/words.js";
import { alertsPage } from "./alerts.js";
import { auditPage } from "./audit.js";
import { watchFaults } from "./banner.js";
import { faultsPage } from "./faults.js";
import { firstPage } from "./first.js";
import { watchFollowed } from "./followed.js";
import { keyPage } from "./key.js";
import { onKey } from "./keys.js";
import { listPage } from "./list.js";
import { notificationsPage } from "./notifications.js";
import { orderPage } from "./order.js";
import { picturePage } from "./picture/page.js";
import { poisonPage } from "./poison.js";
import { searchPage } from "./search.js";
import { forgetKey, hasKey, shareKey } from "./session.js";

/**
 * What a page has: a place to show itself, a voice, and the way to ask for the key.
 * @typedef {{show: (...children: any[]) => void, say: (text: string) => void, askKey: (why: string) => void, again: () => void}} Place
 * @typedef {{stop: () => void, now: () => void, redraw: () => void}} Open
 */

/** @type {{path: RegExp, name: string, link?: string, open: (place: Place, query: URLSearchParams, ...args: string[]) => Open}[]} */
const PAGES = [
  { path: /^\/$/, name: text("console.first.title"), link: "/", open: firstPage },
  { path: /^\/orders$/, name: text("console.list.title"), link: "/orders", open: listPage },
  { path: /^\/orders\/([\w-]+)$/, name: text("console.order.title"), open: orderPage },
  { path: /^\/alerts$/, name: text("console.alerts.title"), link: "/alerts", open: alertsPage },
  { path: /^\/poison$/, name: text("console.main.poison"), link: "/poison", open: poisonPage },
  { path: /^\/audit$/, name: text("console.main.audit"), link: "/audit", open: auditPage },
  { path: /^\/search$/, name: text("console.search.title"), link: "/search", open: searchPage },
  { path: /^\/live$/, name: text("console.live.title"), link: "/live", open: picturePage },
  { path: /^\/faults$/, name: text("console.faults.title"), link: "/faults", open: faultsPage },
  {
    path: /^\/notifications$/,
    name: text("console.notifications.title"),
    link: "/notifications",
    open: notificationsPage,
  },
];
const LINKS = PAGES.flatMap(({ link }) => link ?? []);
const main = the("#main");
/** Where the page of the business is, if it has one, and what it is called. */
const { page, title } = the("#foot").dataset;
const scrolled = new Map();
/** Which row had the focus when a page was left, by address: Back puts it there again. */
const focused = new Map();
/** @type {Open | undefined} */
let opened;
let shownAt = "";
let shownName = "";
/** The address of the last list: Escape leads back to it. */
let lastList = "#/orders";
/** What stands above every page. @type {{stop: () => void}[]} */
let watches = [];

/** @type {Place} */
const place = {
  show: (...children) => {
    render(main, ...children);
    if (scrolled.has(shownAt) && main.scrollHeight > scrolled.get(shownAt)) {
      scrollTo(0, scrolled.get(shownAt));
      scrolled.delete(shownAt);
    }
    focusAgain();
  },
  say: (words) => render(the("#said"), words),
  askKey,
  again: () => opened?.now(),
};

function focusAgain() {
  const rows = focused.has(shownAt) ? main.querySelectorAll("[data-row]") : [];
  const row = [...rows].find((candidate) => candidate.getAttribute("href") === focused.get(shownAt));
  if (!(row instanceof HTMLElement)) return;
  focused.delete(shownAt);
  if (document.activeElement === main) row.focus({ preventScroll: true });
}

function askKey(why) {
  forgetKey();
  opened?.stop();
  for (const watch of watches) watch.stop();
  watches = [];
  opened = keyPage(place, why, open);
  around("");
}

function around(name) {
  const pages = hasKey() ? PAGES.filter(({ link }) => link) : [];
  render(
    the("#top"),
    h("a", { class: "brand", href: "#/" }, text("console.title")),
    h(
      "nav",
      { "aria-label": text("console.title") },
      pages.map((page) =>
        h("a", { href: `#${page.link}`, "aria-current": page.name === name ? "page" : null }, page.name),
      ),
    ),
  );
  render(
    the("#foot"),
    h(
      "span",
      null,
      page && [h("a", { href: page }, title), " "],
      hasKey() && h("button", { class: "plain", onClick: forget }, text("console.main.forget")),
    ),
    h("span", { class: "quiet" }, rich("console.main.keys", { key: h("kbd", null, "?") })),
    hasKey() &&
      h(
        "label",
        { class: "quiet" },
        h("input", { type: "checkbox", checked: isUtc(), onChange: switchZone }),
        " ",
        text("console.main.utc", { zone: offset() }),
      ),
    themeSwitch(() => around(name)),
  );
}

function switchZone(event) {
  setUtc(event.target.checked);
  opened?.redraw();
  around(shownName);
}

function leave() {
  scrolled.set(shownAt, scrollY);
  const row = document.activeElement?.closest("[data-row]");
  if (row) focused.set(shownAt, row.getAttribute("href"));
  opened?.stop();
}

function forget() {
  forgetEverywhere();
  askKey("");
}

function open() {
  if (location.hash && !location.hash.startsWith("#/")) return;
  if (!hasKey()) return askKey("");
  if (opened) leave();
  shownAt = location.hash;
  if (shownAt.startsWith("#/orders?")) lastList = shownAt;
  const [path, query] = (location.hash.slice(1) || "/").split("?");
  const found = PAGES.find((page) => page.path.test(path)) ?? PAGES[0];
  document.title = shownName = found.name;
  render(main);
  if (!scrolled.has(shownAt)) scrollTo(0, 0);
  main.focus({ preventScroll: true });
  opened = found.open(place, new URLSearchParams(query), ...(found.path.exec(path)?.slice(1) ?? []));
  if (!watches.length) watches = [watchFaults(the("#banner")), watchFollowed(the("#followed"))];
  around(found.name);
}

applyTheme();
const forgetEverywhere = shareKey(open, () => askKey(""));
history.scrollRestoration = "manual";
addEventListener("hashchange", open);
addEventListener("keydown", (event) => onKey(event, place, () => lastList, LINKS));
the(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
setInterval(() => !document.hidden && tick(), 1000);
open();
