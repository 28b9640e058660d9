/** What an operator does about the steps of an order that somebody outside answers. Each asks first. */

import { h } from "../../../engine/pages/static/common/dom.js";
import { Problem } from "../../../engine/pages/static/common/api.js";
import { parse, rewrites } from "../../../engine/pages/static/common/json.js";
import { countdown, sentOf, typedOf, zone } from "../../../engine/pages/static/common/time.js";
import { rich, text } from "../../../engine/pages/static/common/words.js";
import { LONG, confirm } from "./dialog.js";
import { at, copier, joined } from "./parts.js";
import { ask, send } from "./session.js";
import { action } from "./words.js";

/** @typedef {{orderId: string, step: any, place: import("./main.js").Place, acted: () => void}} Awaited */

/** What was typed and not taken, by step: closing the dialog loses nothing. @type {Map<string, string>} */
const drafts = new Map();
/** The actions after which the step takes no answer any more. */
const FINAL = ["answer", "refuse"];

/** What the order waits for, and what can be done about it; nothing if it is open to no answer. */
export function answers({ orderId, steps }, place, acted) {
  const open = steps.filter((step) => step.takesAnswer);
  if (!open.length) return null;
  return h(
    "section",
    { "aria-labelledby": "awaited", key: "awaited" },
    h("h2", { id: "awaited" }, text("console.answers.title")),
    open.map((step) => row({ orderId, step, place, acted })),
  );
}

/** One step: until when it waits, and its buttons; what is not awaited yet can be answered all the same. */
function row(awaited) {
  const { step } = awaited;
  const button = (label, onClick, look = "") =>
    h("button", { class: look, "aria-label": `${label} ${step.name}`, onClick }, label);
  const of = (name, act, look) => button(action(name).title, () => act(awaited), look);
  return h(
    "div",
    { key: step.name },
    h("p", null, joined(", ", [h("strong", null, step.name), step.title && ` (${step.title})`], waits(step))),
    h(
      "p",
      { class: "buttons" },
      of("answer", answer, "main"),
      of("refuse", refuse),
      step.completeBy && [of("extend", extend), of("remind", remind)],
      of("link", renew),
    ),
  );
}

const waits = ({ completeBy, failureCount, threshold }) =>
  completeBy
    ? rich("console.answers.waits", {
        until: at(completeBy),
        left: h("strong", { live: () => countdown(completeBy) }),
        requests: failureCount + 1,
        threshold,
      })
    : text("console.answers.not-awaited");

const pathOf = ({ orderId, step }) => `/api/operator/orders/${orderId}/answers/${step.name}`;

/** Ask with the words of an action; what was done is said. */
function asking(awaited, name, path, more, bodyOf, shown) {
  const { title, button, effect, danger } = action(name);
  confirm({
    title: `${title}: ${awaited.step.name}`,
    act: button,
    effect,
    danger,
    ...more,
    run: async (given) => {
      const result = await send(`${pathOf(awaited)}${path}`, { operator: given.operator.trim(), ...bodyOf(given) });
      if (FINAL.includes(name)) drafts.delete(pathOf(awaited));
      awaited.place.say(text("console.act.done", { action: title }));
      awaited.acted();
      return shown?.(result);
    },
    after: awaited.place.again,
  });
}

const noted = ({ note }) => ({ note });

/** Answer for somebody: what is asked is shown, and the answer is typed as JSON. */
async function answer(awaited) {
  const path = pathOf(awaited);
  let details;
  try {
    details = await ask(path);
  } catch (fault) {
    const { message } = /** @type {import("../../../engine/pages/static/common/api.js").Failure} */ (fault);
    return awaited.place.say(text("console.answers.cannot-show", { message }));
  }
  const field = {
    name: "content",
    label: text("console.answers.content"),
    type: LONG,
    value: drafts.get(path) ?? form(details.fields),
  };
  const typed = ({ content }) => drafts.set(path, content);
  asking(awaited, "answer", "", { unnoted: true, fields: [field], typed, about: question(details) }, ({ content }) => ({
    answer: parsed(content),
  }));
}

/** What is asked, until when, and how often it was. @param {any} asked */
export const question = ({ question: what, until, requestsSent, asks }) => [
  h(
    "p",
    null,
    until ? rich("console.answers.asked-until", { until: at(until) }) : text("console.answers.not-yet"),
    " ",
    text("console.answers.asked", { sent: requestsSent, all: asks }),
  ),
  what
    ? h(
        "pre",
        { class: "wide", tabindex: 0, role: "group", "aria-label": text("console.answers.question") },
        JSON.stringify(what, null, 2),
      )
    : h("p", { class: "quiet" }, text("console.answers.no-question")),
];

/** The form of an answer, to be filled in. @param {string[]} fields */
export const form = (fields) => JSON.stringify(Object.fromEntries(fields.map((name) => [name, ""])), null, 2);

/** The object in a text. Raises `Problem`, which says what is wrong with it. @param {string} json */
export function parsed(json) {
  let found;
  try {
    found = parse(json, rewrites);
  } catch (fault) {
    throw new Problem(0, { title: text("console.answers.no-json"), faults: [String(fault)] });
  }
  if (!JSON.stringify(found).startsWith("{"))
    throw new Problem(0, { title: text("console.answers.no-object", { example: "{}" }) });
  return found;
}

function refuse(awaited) {
  const field = { name: "refusal", label: text("console.answers.refusal"), type: "text", maxlength: 200 };
  asking(awaited, "refuse", "", { unnoted: true, fields: [field] }, ({ refusal }) => ({ refusal }));
}

function extend(awaited) {
  const filledIn = awaited.step.completeBy;
  const label = text("console.act.until", { zone: zone() });
  const field = { name: "until", label, type: "datetime-local", value: typedOf(filledIn) };
  asking(awaited, "extend", "/extend", { fields: [field] }, ({ until, note }) => ({
    until: sentOf(until, filledIn),
    note,
  }));
}

function remind(awaited) {
  asking(awaited, "remind", "/remind", {}, noted);
}

/** Make a new link, which is shown once. */
function renew(awaited) {
  asking(awaited, "link", "/link", {}, noted, ({ callbackUrl }) => [
    h("p", null, text("console.answers.new-link")),
    h("p", null, h("code", null, callbackUrl)),
    h(
      "p",
      null,
      copier(text("console.order.copy-link"), () => callbackUrl),
    ),
  ]);
}
