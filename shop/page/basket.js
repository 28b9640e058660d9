/** The basket, and the form by which it is ordered. */

import { Problem, call } from "../../engine/pages/static/common/api.js";
import { h, the } from "../../engine/pages/static/common/dom.js";
import { anotherPurchase, basket, bought, money, put, total } from "./store.js";

const FIELDS = [
  { name: "name", label: "Name", type: "text", autocomplete: "name", fault: "Enter your name" },
  {
    name: "email",
    label: "E-mail",
    type: "email",
    autocomplete: "email",
    fault: "Enter an e-mail address, such as ada@example.com",
  },
];
const EMAIL = /^[^@\s]+@[^@\s]+$/;

/** @param {import("./main.js").Place} place */
export function basketPage(place) {
  let sending = false;
  /** @type {{field?: string, text: string}[]} */
  let faults = [];
  let wasOther = false;

  function draw() {
    const { lines } = basket();
    place.changed();
    if (!lines.length) return place.show(h("h1", null, "Your basket"), empty());
    place.show(
      h("h1", null, "Your basket"),
      faults.length > 0 && summary(),
      h("ul", { class: "lines" }, lines.map(line)),
      h(
        "form",
        { class: "order", novalidate: true, onSubmit: send },
        FIELDS.map(field),
        h(
          "div",
          { class: "total" },
          h("p", null, "Total ", h("strong", null, total(lines))),
          h("button", { class: "main", disabled: sending }, sending ? "One moment…" : "Order now"),
        ),
      ),
    );
  }

  const line = (item) =>
    h(
      "li",
      { key: item.sku },
      h("span", { class: "name" }, item.name, h("span", { class: "muted" }, ` ${money(item.cents, item.currency)}`)),
      h(
        "span",
        { class: "amount" },
        h("button", { "aria-label": `Remove one ${item.name}`, onClick: () => change(item, -1) }, "−"),
        h("span", { class: "number" }, item.quantity),
        h("button", { "aria-label": `Add one ${item.name}`, onClick: () => change(item, 1) }, "+"),
      ),
      h("span", { class: "sum" }, total([item])),
    );

  function field({ name, label, type, autocomplete }) {
    const fault = faults.find((candidate) => candidate.field === name);
    return h(
      "label",
      { class: "field", key: name },
      h("span", null, label),
      fault && h("span", { class: "wrong", id: `${name}-fault` }, fault.text),
      h("input", {
        id: name,
        name,
        type,
        autocomplete,
        maxlength: 200,
        required: true,
        "aria-invalid": fault ? "true" : null,
        "aria-describedby": fault ? `${name}-fault` : null,
      }),
    );
  }

  const summary = () =>
    h(
      "div",
      { class: "note wrong", role: "alert", tabindex: -1, id: "faults" },
      h("h2", null, "The order was not sent"),
      h(
        "ul",
        null,
        faults.map((fault) =>
          h(
            "li",
            null,
            fault.field ? h("a", { href: `#${fault.field}`, onClick: goTo(fault.field) }, fault.text) : fault.text,
          ),
        ),
      ),
      wasOther && h("button", { onClick: startAnew }, "Order this as well"),
    );

  function change(item, by) {
    put(item, item.quantity + by);
    place.say(`${item.name}: ${item.quantity + by} in the basket`);
    draw();
  }

  function startAnew() {
    anotherPurchase();
    faults = [];
    wasOther = false;
    draw();
  }

  async function send(event) {
    event.preventDefault();
    if (sending) return; // a second tap
    const form = new FormData(event.target);
    const given = { name: String(form.get("name")), email: String(form.get("email")) };
    faults = FIELDS.filter(({ name }) => !isGood(name, given[name])).map(({ name, fault }) => ({
      field: name,
      text: fault,
    }));
    if (!faults.length && (await accepted(given))) return;
    draw();
    document.getElementById("faults")?.focus(); // not there if another tab has emptied the basket
  }

  async function accepted({ name, email }) {
    sending = true;
    draw();
    const { key, lines } = basket();
    const body = {
      customer: { name: name.trim(), email: email.trim() },
      items: lines.map(({ sku, quantity }) => ({ sku, quantity })),
    };
    try {
      const { data } = await call("/api/orders", { body, headers: { "Idempotency-Key": key } });
      bought(data.orderId);
      location.hash = `#/orders/${data.orderId}`;
      return true;
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      faults = faultsOf(problem);
      wasOther = problem.status === 409;
      return false;
    } finally {
      sending = false;
    }
  }

  draw();
}

const isGood = (name, text) => (name === "email" ? EMAIL.test(text.trim()) : text.trim() !== "");

const goTo = (field) => (event) => {
  event.preventDefault();
  the(`#${field}`).focus();
};

/** What went wrong, for a customer: by field where the answer names one. @param {Problem} problem */
function faultsOf(problem) {
  if (problem.status === 409)
    return [
      {
        text: "This basket was already sent with other details, and that order may be under way. Look at your orders first.",
      },
    ];
  if (!problem.faults.length) return [{ text: `${problem.message}. Nothing is lost: try again in a moment.` }];
  return problem.faults.map((fault) => {
    const field = FIELDS.find(({ name }) => fault.startsWith(`customer.${name}`));
    return field ? { field: field.name, text: field.fault } : { text: fault };
  });
}

const empty = () =>
  h(
    "div",
    { class: "empty" },
    h("p", null, "Your basket is empty."),
    h("p", null, h("a", { href: "#/" }, "Look at our teas")),
  );
