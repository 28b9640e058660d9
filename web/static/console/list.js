/** Orders in a list. The filter is in the address: a link, Back and a reload show the same. */

import { h } from "../common/dom.js";
import { badge } from "../common/marks.js";
import { bulkButtons, canMean } from "./bulk.js";
import { differences, meant, open } from "./listing.js";
import { live } from "./live.js";
import { listOf, many, nothing, since, text, head } from "./parts.js";
import { list, lists, orderLook, waiting } from "./words.js";

const EVERY_SECONDS = 10;

/** @typedef {import("./listing.js").Filter & {state: string}} Filter what the address says */

/** What was listed last, by address: Back shows it at once. */
const remembered = new Map();

/** @param {import("./main.js").Place} place @param {URLSearchParams} query @returns {import("./main.js").Open} */
export function listPage(place, query) {
  const address = query.toString();
  /** @type {Filter} */
  const filter = { state: waiting(), ...Object.fromEntries(query) };
  const before = remembered.get(address);
  /** So many pages: each look asks for them again, so nobody gets more than were asked for. */
  let wanted = before?.wanted ?? 1;
  /** The rows as they stand while somebody is at them. */
  let shown = before?.data;

  async function load(signal) {
    filter.state ||= waiting(); // now it is known
    const { parts, situation, waitsForOperator } = list(filter.state);
    const pages = await Promise.all(parts.map((part) => pageOf(part, waitsForOperator, signal)));
    const orders = pages.flatMap((page) => page.orders).filter((each) => !situation || each.situation === situation);
    return { orders, more: pages.some((page) => page.more), until: pages.find((page) => page.until)?.until };
  }

  /** Of those that wait for an operator exactly what a bulk action would mean, if one can. */
  const pageOf = (part, waits, signal) =>
    waits && canMean(filter) ? meant(part, filter, wanted, signal) : open(part, filter, wanted, signal);

  function draw(fresh) {
    const held = shown && isAtRow() ? differences(shown.orders, fresh.orders) : 0;
    if (!held) shown = fresh;
    remembered.set(address, { wanted, data: shown });
    const { orders, more, until } = shown;
    return [
      h("h1", null, "Orders"),
      chips(filter),
      form(filter),
      held > 0 &&
        h(
          "p",
          { class: "note", role: "status", key: "changes" },
          `${many(held, "change")} since; `,
          h("button", { class: "plain", onClick: () => ((shown = fresh), page.redraw()) }, "show"),
        ),
      canMean(filter) &&
        orders.length > 0 &&
        bulkButtons(
          filter.state,
          { workflow: filter.workflow, step: filter.step, reason: filter.reason },
          until,
          place,
          page.failed,
        ),
      orders.length ? table(orders) : empty(filter, more),
      more && h("button", { onClick: () => ((wanted += 1), page.now()) }, "Show more"),
      h("p", { class: "muted small", role: "status" }, many(orders.length, "order"), more ? " so far" : ""),
    ];
  }

  const page = live(place, {
    title: "Orders",
    load,
    draw,
    every: () => EVERY_SECONDS,
    matters: ({ orders, more }) => [orders, more],
    first: shown,
  });
  return page;
}

const isAtRow = () => Boolean(document.activeElement?.closest("[data-row]"));
const chips = ({ state }) =>
  h(
    "nav",
    { class: "chips", "aria-label": "Lists" },
    Object.entries(lists()).map(([name, { title }]) =>
      h("a", { href: listOf({ state: name }), "aria-current": name === state ? "page" : null }, title),
    ),
  );

function form(filter) {
  const go = (event) => {
    event.preventDefault();
    location.hash = listOf({ state: filter.state, ...Object.fromEntries(new FormData(event.target)) });
  };
  const field = (name, label) =>
    h("label", { key: name }, `${label} `, h("input", { name, value: filter[name] ?? "" }));
  return h(
    "form",
    { class: "filter", onSubmit: go },
    field("step", "Failed step"),
    field("reason", "Reason"),
    field("workflow", "Workflow"),
    field("text", "Text"),
    h("button", null, "Filter"),
    (filter.step || filter.reason || filter.workflow || filter.text) &&
      h("a", { href: listOf({ state: filter.state }) }, "Clear"),
  );
}

const table = (orders) =>
  h(
    "table",
    { class: "rows" },
    head(["State", "Order", "Failed step", "Reason", "Since"]),
    h("tbody", null, orders.map(row)),
  );

function row(order) {
  const { look, word } = orderLook(order);
  return h(
    "tr",
    { key: order.orderId },
    h("td", { "data-name": "State" }, badge(look, word)),
    h(
      "td",
      { "data-name": "Order" },
      h("a", { href: `#/orders/${order.orderId}`, "data-row": true }, h("code", null, order.orderId)),
    ),
    h("td", { "data-name": "Failed step" }, order.failedSteps.join(", ")),
    h("td", { "data-name": "Reason" }, text(order.reason ?? "")),
    h("td", { "data-name": "Since", class: "muted" }, order.updatedAt && since(order.updatedAt)),
  );
}

/** @param {Filter} filter @param {boolean} more */
function empty({ state, step, reason, text: part, workflow }, more) {
  if (more) return nothing("None among those read so far", "Show more looks further.");
  if (step || reason || part || workflow)
    return nothing("No order fits this filter", h("a", { href: listOf({ state }) }, "Show all of this list"));
  return list(state).waitsForOperator
    ? nothing("No order needs you", "Orders that failed for good wait here until somebody puts them right.")
    : nothing(
        "No order is in this list",
        "Finished orders leave it; ",
        h("a", { href: "#/search" }, "search"),
        " finds them.",
      );
}
