/** Finds orders in any state: by the beginning of their ids or keys, or by the customer's address, which no address bar shows. */

import { h } from "../../../engine/pages/static/common/dom.js";
import { rich, text } from "../../../engine/pages/static/common/words.js";
import { listOf, nothing } from "./parts.js";
import { ENDED, table } from "./rows.js";
import { ask, looking } from "./session.js";
import { learn } from "./words.js";

const ID = /^b\d\d(-[0-9A-HJKMNP-TV-Z]{0,26})?$/;
const WHOLE_ID = 30;
const LONGEST_KEY = 50;
/** So many rows are drawn: whoever finds more has asked for too little. */
const MOST_SHOWN = 500;

/** @typedef {{orders: import("./rows.js").Listed[], unreadable: string[], more: boolean, lookedAt?: number}} Found */

/** @param {import("./main.js").Place} place @param {URLSearchParams} query @returns {import("./main.js").Open} */
export function searchPage(place, query) {
  /** @type {Found | undefined} */
  let found;
  let problem;
  /** The search under way. @type {AbortController | undefined} */
  let looks;
  let left = false;
  const id = query.get("id") ?? "";
  const key = query.get("key") ?? "";

  function draw() {
    if (left) return;
    place.show(
      h("h1", null, text("console.search.title")),
      h(
        "form",
        { class: "filter", role: "search", onSubmit: go },
        h(
          "label",
          { class: "grow" },
          h("span", { class: "for-readers" }, text("console.search.wanted")),
          h("input", {
            name: "q",
            value: id || key,
            placeholder: text("console.search.example", { id: "b07-01JCX…" }),
            made: (node) => node.focus(),
          }),
        ),
        h("button", { class: "main" }, text("console.search.title")),
      ),
      looks && underWay(found, () => halt()),
      problem &&
        h(
          "p",
          { class: "note wrong", role: "alert" },
          problem.message,
          problem.faults?.map((fault) => ` ${fault}`),
        ),
      found && result(found, Boolean(looks)),
    );
  }

  function go(event) {
    event.preventDefault();
    const wanted = String(new FormData(event.target).get("q")).trim();
    if (wanted.includes("@")) return look((signal) => ofCustomer(wanted, signal, learnt));
    const asId = wanted.toUpperCase().replace(/^B/, "b");
    if (!ID.test(asId)) return void (location.hash = asKeyOrText(wanted));
    location.hash = asId.length === WHOLE_ID ? `#/orders/${asId}` : `#/search?id=${asId}`;
  }

  function learnt(/** @type {Found} */ soFar) {
    found = soFar;
    draw();
  }

  /** End the search; what was found stays. */
  function halt() {
    looks?.abort();
    looks = undefined;
    draw();
  }

  /** @param {(signal: AbortSignal) => Promise<Found>} search */
  async function look(search) {
    looks?.abort();
    const mine = (looks = new AbortController());
    [problem, found] = [undefined, undefined];
    draw();
    try {
      const [all] = await Promise.all([search(mine.signal), learn(mine.signal)]);
      if (mine.signal.aborted) return;
      if (key && !all.orders.length) return void location.replace(ofText(key));
      found = all;
      place.say(text("console.search.found", { count: found.orders.length }));
    } catch (fault) {
      if (mine.signal.aborted) return;
      problem = fault;
    }
    looks = undefined;
    draw();
  }

  draw();
  if (id) look((signal) => ask(`/api/operator/search?id=${id}`, { signal }));
  if (key) look((signal) => ofKey(key, signal));
  const stop = () => {
    left = true;
    looks?.abort();
  };
  return { stop, now: () => {}, redraw: draw };
}

/** Where a text leads that is neither an id nor an address: to the orders of that key, or else to the open ones with it. */
function asKeyOrText(wanted) {
  return wanted.length > LONGEST_KEY ? ofText(wanted) : `#/search?key=${encodeURIComponent(wanted)}`;
}

function ofText(wanted) {
  return listOf({ state: "open", text: wanted });
}

async function ofKey(key, signal) {
  const page = await ask(`/api/operator/orders?key=${encodeURIComponent(key)}`, { signal });
  return { orders: page.orders, unreadable: [], more: Boolean(page.continuation) };
}

/** Look through all orders, page by page; what was found so far is told. */
async function ofCustomer(email, signal, tell) {
  /** @type {Found} */
  let found = { orders: [], unreadable: [], more: false, lookedAt: 0 };
  let continuation;
  do {
    const body = { ...looking(), email, ...(continuation && { continuation }) };
    const page = await ask("/api/operator/customers/find", { body, signal });
    found = {
      orders: [...found.orders, ...page.found],
      unreadable: [...found.unreadable, ...page.unreadable],
      more: false,
      lookedAt: (found.lookedAt ?? 0) + page.lookedAt,
    };
    if (signal.aborted) break;
    tell(found);
    continuation = page.continuation;
  } while (continuation);
  return found;
}

const underWay = (found, halt) =>
  h(
    "p",
    { class: "note", key: "looks" },
    found
      ? text("console.search.looked-at", { count: found.lookedAt ?? 0, found: found.orders.length })
      : text("console.search.looking"),
    " ",
    h("button", { class: "plain", onClick: halt }, text("console.search.stop")),
  );

/** @param {Found} found @param {boolean} looks whether more may be found */
function result({ orders, unreadable, more }, looks) {
  if (!orders.length && !unreadable.length)
    return looks ? null : nothing(text("console.search.none"), text("console.search.none-hint"));
  return h(
    "section",
    { "aria-label": text("console.search.results") },
    table(orders.slice(0, MOST_SHOWN), ENDED),
    orders.length > MOST_SHOWN &&
      h("p", { class: "muted" }, text("console.search.first", { shown: MOST_SHOWN, count: orders.length })),
    unreadable.map((id) =>
      h(
        "p",
        null,
        rich("console.search.unreadable", { order: h("a", { href: `#/orders/${id}` }, h("code", null, id)) }),
      ),
    ),
    more && h("p", { class: "muted" }, text("console.search.more")),
  );
}
