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
            value: key || id,
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
    location.hash = placeOf(wanted);
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
      if (key && !all.orders.length && !all.unreadable.length) return void location.replace(ofText(key));
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
  if (id || key) look((signal) => ofIdOrKey(id, key, signal));
  const stop = () => {
    left = true;
    looks?.abort();
  };
  return { stop, now: () => {}, redraw: draw };
}

/**
 * Where a text leads that is no address: to the order of that id, to what is found under it as the beginning of an id,
 * of a key or of both, or to the open orders with it.
 * @param {string} wanted
 */
export function placeOf(wanted) {
  const asId = wanted.toUpperCase().replace(/^B/, "b");
  if (!ID.test(asId)) return [...wanted].length > LONGEST_KEY ? ofText(wanted) : `#/search?${asQuery({ key: wanted })}`;
  return asId.length === WHOLE_ID ? `#/orders/${asId}` : `#/search?${asQuery({ id: asId, key: wanted })}`;
}

/** @param {Record<string, string>} wanted */
const asQuery = (wanted) => new URLSearchParams(wanted).toString().replaceAll("+", "%20");

function ofText(wanted) {
  return listOf({ state: "open", text: wanted });
}

/** The orders whose ids begin with the one, and those of which a key begins with the other, each once. @returns {Promise<Found>} */
async function ofIdOrKey(id, key, signal) {
  const none = { orders: [], unreadable: [], more: false };
  const [byId, byKey] = await Promise.all([
    id ? ask(`/api/operator/search?id=${encodeURIComponent(id)}`, { signal }) : none,
    key ? ask(`/api/operator/orders?key=${encodeURIComponent(key)}`, { signal }) : none,
  ]);
  const known = new Set(byId.orders.map(({ orderId }) => orderId));
  return {
    orders: [...byId.orders, ...byKey.orders.filter(({ orderId }) => !known.has(orderId))],
    unreadable: byId.unreadable,
    more: byId.more || Boolean(byKey.continuation),
  };
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
