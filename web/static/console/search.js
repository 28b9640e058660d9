/** Finds orders in any state: by the beginning of their ids or keys, or by the customer's address, which no address bar shows. */

import { h } from "../common/dom.js";
import { badge } from "../common/marks.js";
import { listOf, many, nothing, since, text, head } from "./parts.js";
import { ask, looking } from "./session.js";
import { learn, orderLook } from "./words.js";

const ID = /^b\d\d-[0-9A-HJKMNP-TV-Z]{0,26}$/;
const WHOLE_ID = 30;
const LONGEST_KEY = 50;

/** @param {import("./main.js").Place} place @param {URLSearchParams} query @returns {import("./main.js").Open} */
export function searchPage(place, query) {
  let found, problem;
  let left = false;
  const id = query.get("id") ?? "";
  const key = query.get("key") ?? "";

  function draw() {
    place.show(
      h("h1", null, "Search"),
      h(
        "form",
        { class: "filter", role: "search", onSubmit: go },
        h(
          "label",
          { class: "grow" },
          h("span", { class: "for-readers" }, "Order id, key, e-mail address or text"),
          h("input", {
            name: "q",
            value: id || key,
            placeholder: "b07-01JCX…, a number of the business, an e-mail address, or part of a reason",
            made: (node) => node.focus(),
          }),
        ),
        h("button", { class: "main" }, "Search"),
      ),
      problem &&
        h(
          "p",
          { class: "note wrong", role: "alert" },
          problem.message,
          problem.faults?.map((each) => ` ${each}`),
        ),
      found && result(found),
    );
  }

  function go(event) {
    event.preventDefault();
    const wanted = String(new FormData(event.target).get("q")).trim();
    if (wanted.includes("@")) return look(() => ofCustomer(wanted));
    const asId = wanted.toUpperCase().replace(/^B/, "b");
    if (!ID.test(asId)) return void (location.hash = asKeyOrText(wanted));
    location.hash = asId.length === WHOLE_ID ? `#/orders/${asId}` : `#/search?id=${asId}`;
  }

  async function look(search) {
    problem = undefined;
    try {
      [found] = await Promise.all([search(), learn()]);
      if (left) return;
      if (key && !found.orders.length) return void location.replace(ofText(key));
      place.say(`${many(found.orders.length, "order")} found`);
    } catch (fault) {
      problem = fault;
    }
    if (!left) draw();
  }

  draw();
  if (id) look(() => ask(`/api/operator/search?id=${id}`));
  if (key) look(() => ofKey(key));
  return { stop: () => void (left = true), now: () => {}, redraw: draw };
}

/** Where a text leads that is neither an id nor an address: to the orders of that key, or else to the open ones with it. */
function asKeyOrText(wanted) {
  return wanted.length > LONGEST_KEY ? ofText(wanted) : `#/search?key=${encodeURIComponent(wanted)}`;
}

function ofText(text) {
  return listOf({ state: "open", text });
}

async function ofKey(key) {
  const page = await ask(`/api/operator/orders?key=${encodeURIComponent(key)}`);
  return { orders: page.orders, unreadable: [], more: Boolean(page.continuation) };
}

async function ofCustomer(email) {
  let [orders, unreadable] = [/** @type {{orderId: string}[]} */ ([]), /** @type {string[]} */ ([])];
  let continuation;
  do {
    const page = await ask("/api/operator/customers/find", {
      body: { ...looking(), email, ...(continuation && { continuation }) },
    });
    orders = [...orders, ...page.orders.map((orderId) => ({ orderId }))];
    unreadable = [...unreadable, ...(page.unreadable ?? [])];
    continuation = page.continuation;
  } while (continuation);
  return { orders, unreadable, more: false };
}

function result({ orders, unreadable, more }) {
  if (!orders.length && !unreadable.length)
    return nothing("No order was found", "An id or a key is found by its beginning; a customer by the whole address.");
  return h(
    "section",
    { "aria-label": "Found" },
    h("table", { class: "rows" }, head(["State", "Order", "Reason", "Since"]), h("tbody", null, orders.map(row))),
    unreadable.map((id) => h("p", null, "Cannot be read: ", h("a", { href: `#/orders/${id}` }, h("code", null, id)))),
    more && h("p", { class: "muted" }, "There are more: give more of it."),
  );
}

function row(order) {
  const look = order.situation && orderLook(order);
  return h(
    "tr",
    { key: order.orderId },
    h("td", { "data-name": "State" }, look && badge(look.look, look.word)),
    h(
      "td",
      { "data-name": "Order" },
      h("a", { href: `#/orders/${order.orderId}`, "data-row": true }, h("code", null, order.orderId)),
    ),
    h("td", { "data-name": "Reason" }, text(order.reason ?? "")),
    h("td", { "data-name": "Since", class: "muted" }, order.updatedAt && since(order.updatedAt)),
  );
}
