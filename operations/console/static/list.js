/** Orders in a list. The filter is in the address: a link, Back and a reload show the same. */

import { h } from "../../../engine/pages/static/common/dom.js";
import { sentOf, typedOf } from "../../../engine/pages/static/common/time.js";
import { text } from "../../../engine/pages/static/common/words.js";
import { bulkButtons, canMean } from "./bulk.js";
import { fileOf, save } from "./csv.js";
import { differences, matching, open } from "./listing.js";
import { live } from "./live.js";
import { listOf, nothing } from "./parts.js";
import { asCsv, ENDED, table, UNDER_WAY } from "./rows.js";
import { list, lists, waiting } from "./words.js";

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
  /** Whether anything was answered since the page was opened: what was remembered gives way to that. */
  let looked = false;

  async function load(signal) {
    filter.state ||= waiting(); // now it is known
    const { parts, situation, waitsForOperator } = list(filter.state);
    const pages = await Promise.all(parts.map((part) => pageOf(part, waitsForOperator, signal)));
    const orders = pages.flatMap((page) => page.orders).filter((order) => !situation || order.situation === situation);
    return { orders, more: pages.some((page) => page.more), until: pages.find((page) => page.until)?.until };
  }

  /** Of those that wait for an operator exactly what a bulk action would mean, if one can. */
  const pageOf = (part, waits, signal) =>
    waits && canMean(filter) ? matching(part, filter, wanted, signal) : open(part, filter, wanted, signal);

  function draw(fresh) {
    const held = looked && isAtRow() ? differences(shown.orders, fresh.orders) : 0;
    if (!held) shown = fresh;
    looked ||= fresh !== before?.data;
    remembered.set(address, { wanted, data: shown });
    const { orders, more, until } = shown;
    const { waitsForOperator } = list(filter.state);
    return [
      h("h1", null, text("console.list.title")),
      chips(filter),
      h(
        "details",
        { class: "filters", open: isFiltered(filter) || innerWidth > 700, key: "filter" },
        h("summary", null, text("console.list.filter")),
        form(filter, orders),
      ),
      held > 0 &&
        h(
          "p",
          { class: "note", role: "status", key: "changes" },
          text("console.list.changes", { count: held }),
          "; ",
          h("button", { class: "plain", onClick: () => ((shown = fresh), page.redraw()) }, text("console.list.show")),
        ),
      waitsForOperator && !canMean(filter) && h("p", { class: "muted" }, text("console.list.not-meant")),
      canMean(filter) &&
        orders.length > 0 &&
        bulkButtons(
          filter.state,
          { workflow: filter.workflow, step: filter.step, agent: filter.agent, cause: filter.cause },
          until,
          place,
          page.failed,
        ),
      orders.length ? table(orders, columnsOf(filter.state)) : empty(filter, more),
      h(
        "p",
        { class: "buttons" },
        more && h("button", { onClick: () => ((wanted += 1), page.now()) }, text("console.parts.show-more")),
        orders.length > 0 &&
          h(
            "button",
            { onClick: () => save(fileOf("orders", orders.length, !more), asCsv(orders)) },
            text("console.parts.save-csv"),
          ),
      ),
      h(
        "p",
        { class: "muted small", role: "status" },
        text(more ? "console.list.so-far" : "console.parts.orders", { count: orders.length }),
      ),
    ];
  }

  const page = live(place, {
    title: text("console.list.title"),
    heading: ({ orders, more }) => `(${orders.length}${more ? "+" : ""}) ${list(filter.state).title}`,
    load,
    draw,
    every: () => EVERY_SECONDS,
    matters: ({ orders, more }) => [orders, more],
    first: shown,
  });
  return page;
}

function columnsOf(state) {
  const { waitsForOperator, isOver } = list(state);
  return waitsForOperator || isOver ? ENDED : UNDER_WAY;
}

/** Whether orders of a list may have a step that failed for good. @param {string} state */
function mayHaveFailed(state) {
  const { waitsForOperator, isOver, parts } = list(state);
  return waitsForOperator || isOver || parts.includes(waiting());
}

const isAtRow = () => Boolean(document.activeElement?.closest("[data-row]"));
const chips = ({ state }) =>
  h(
    "nav",
    { class: "chips", "aria-label": text("console.list.lists") },
    Object.entries(lists()).map(([name, { title }]) =>
      h("a", { href: listOf({ state: name }), "aria-current": name === state ? "page" : null }, title),
    ),
  );

/** What is sent of a field; what is wrong with it is said beside it. @param {HTMLInputElement} field @param {() => string} sent */
function orSay(field, sent) {
  try {
    return sent();
  } catch (error) {
    field.setCustomValidity(/** @type {Error} */ (error).message);
    return "";
  }
}

/** The filter; of what has to be said whole, those are offered that the list has. @param {any[]} orders */
function form(filter, orders) {
  const go = (event) => {
    event.preventDefault();
    const typed = Object.fromEntries(new FormData(event.target));
    const moment = (name) =>
      typed[name] && orSay(event.target.elements[name], () => sentOf(String(typed[name]), filter[name]));
    const [since, until] = [moment("since"), moment("until")];
    if (event.target.reportValidity()) location.hash = listOf({ state: filter.state, ...typed, since, until });
  };
  const field = (name, label, more = {}) =>
    h("label", { key: name }, label, " ", h("input", { name, value: filter[name] ?? "", ...more }));
  const known = (name, label, values) => [
    field(name, label, { list: `known-${name}` }),
    h(
      "datalist",
      { id: `known-${name}`, key: `known ${name}` },
      [...new Set(values)].map((value) => h("option", { value })),
    ),
  ];
  const time = (name, label) =>
    field(name, label, {
      type: "datetime-local",
      value: typedOf(filter[name]),
      onInput: (event) => event.target.setCustomValidity(""),
    });
  return h(
    "form",
    { class: "filter", onSubmit: go },
    (mayHaveFailed(filter.state) || filter.step || filter.agent || filter.cause) && [
      known(
        "step",
        text("console.list.step"),
        orders.flatMap((order) => order.failedSteps ?? []),
      ),
      known(
        "agent",
        text("console.list.agent"),
        orders.flatMap((order) => order.failedAgents ?? []),
      ),
      known(
        "cause",
        text("console.list.cause"),
        orders.flatMap((order) => order.cause ?? []),
      ),
    ],
    known(
      "workflow",
      text("console.list.workflow"),
      orders.flatMap((order) => order.workflow ?? []),
    ),
    field("text", text("console.list.text")),
    time("since", text("console.list.since")),
    time("until", text("console.list.until")),
    h("button", null, text("console.list.filter")),
    isFiltered(filter) && h("a", { href: listOf({ state: filter.state }) }, text("console.list.clear")),
  );
}

/** Whether the orders of a list are not all meant. @param {Filter} filter */
const isFiltered = ({ step, agent, cause, workflow, text, since, until }) =>
  Boolean(step || agent || cause || workflow || text || since || until);

/** @param {Filter} filter @param {boolean} more */
function empty(filter, more) {
  const { state } = filter;
  if (more) return nothing(text("console.list.none-yet"), text("console.list.none-yet-hint"));
  if (isFiltered(filter))
    return nothing(text("console.list.none-fits"), h("a", { href: listOf({ state }) }, text("console.list.show-all")));
  return list(state).waitsForOperator
    ? nothing(text("console.list.none-waits"), text("console.list.none-waits-hint"))
    : nothing(text("console.list.none"), text("console.list.none-hint"));
}
