/** Asks before something is done: says what it does, and wants a name and a note. Enter alone does nothing. */

import { h, render } from "../../../engine/pages/static/common/dom.js";
import { text } from "../../../engine/pages/static/common/words.js";
import { operator, setOperator } from "./session.js";

const MANY = 20;
/** The type of a field for several lines. */
export const LONG = "textarea";

/**
 * @typedef {object} Field
 * @property {string} name
 * @property {string} label
 * @property {string} [type] of an `input`, or `LONG`
 * @property {string} [value]
 * @property {number} [maxlength]
 * @property {string[]} [choices] what it can be, if it is chosen and not typed
 * @property {Record<string, string>} [words] for choices that have words of their own
 * @property {boolean} [isOptional] whether it may be left empty
 */
/**
 * @typedef {object} Question
 * @property {string} title
 * @property {string} effect what it does, in words
 * @property {string} [act] the word on the button
 * @property {boolean} [danger]
 * @property {import("../../../engine/pages/static/common/dom.js").Child} [about] what has to be known besides
 * @property {Field[]} [fields] what has to be given besides
 * @property {(given: Record<string, string>) => void} [typed] told of all that is typed
 * @property {boolean} [unnoted] whether no reason is kept
 * @property {number} [orders] how many are meant: of many the number has to be typed
 * @property {(given: Record<string, string>, progress: (text: string) => void) => Promise<any>} run
 *   does it; returns nothing, or what is to be shown before the dialog is closed
 * @property {() => void} [after] once the dialog is closed, however that came
 */

/** Ask; nothing else is asked meanwhile. @param {Question} question */
export function confirm(question) {
  if (document.querySelector("dialog")) return;
  const dialog = document.createElement("dialog");
  let [progress, busy] = ["", false];
  /** @type {import("../../../engine/pages/static/common/api.js").Failure | null} */
  let problem = null;
  /** What `run` returned. */
  let result;
  /** @type {Record<string, string>} */
  let given = { operator: operator() };
  const typed = (name) => (event) => {
    given = { ...given, [name]: event.target.value };
    question.typed?.(given);
    draw();
  };
  const fields = question.fields ?? [];
  for (const { name, choices, value } of fields) given[name] = value ?? choices?.[0] ?? "";
  const typesNumber = (question.orders ?? 0) > MANY;
  const ready = () =>
    given.operator?.trim() &&
    (question.unnoted || given.note?.trim()) &&
    fields.every(({ name, isOptional }) => isOptional || given[name].trim()) &&
    (!typesNumber || Number(given.number) === question.orders);

  /** @param {Field & Record<string, any>} asked with attributes of an `input` */
  const field = ({ name, label, type = "text", value = "", maxlength = 1000, isOptional: _, ...more }) =>
    h(
      "label",
      { class: "field", key: name },
      h("span", null, label),
      type === LONG
        ? h(LONG, { name, value, onInput: typed(name), rows: 8, spellcheck: "false" })
        : h("input", { name, type, value, onInput: typed(name), maxlength, ...more }),
    );

  /** @param {Field} field */
  const choice = ({ name, label, choices = [], words = {} }) =>
    h(
      "label",
      { class: "field", key: name },
      h("span", null, label),
      h(
        "select",
        { name, onChange: typed(name) },
        choices.map((choice) => h("option", { value: choice }, words[choice] ?? choice)),
      ),
    );

  const form = () => [
    h("p", { id: "effect" }, question.effect),
    question.about,
    fields.map((one) => (one.choices ? choice(one) : field(one))),
    field({
      name: "operator",
      label: text("console.dialog.name"),
      value: operator(),
      maxlength: 80,
      autocomplete: "name",
    }),
    !question.unnoted && field({ name: "note", label: text("console.dialog.note"), autocomplete: "off" }),
    typesNumber &&
      field({
        name: "number",
        label: text("console.dialog.number", { count: String(question.orders) }),
        inputmode: "numeric",
        autocomplete: "off",
      }),
    problem &&
      h(
        "div",
        { class: "note wrong", role: "alert" },
        h("p", null, problem.message),
        problem.faults?.map((fault) => h("p", null, fault)),
      ),
    h("p", { role: "status" }, progress),
    h(
      "div",
      { class: "buttons" },
      h(
        "button",
        { onClick: () => dialog.close(), disabled: busy, made: (node) => node.focus() },
        text("console.dialog.cancel"),
      ),
      h(
        "button",
        { class: `main ${question.danger ? "danger" : ""}`, disabled: busy || !ready(), onClick: go },
        question.act ?? question.title,
      ),
    ),
  ];

  const draw = () =>
    render(
      dialog,
      h("h2", { id: "asked" }, question.title),
      result
        ? [
            result,
            h(
              "div",
              { class: "buttons" },
              h(
                "button",
                { class: "main", onClick: () => dialog.close(), made: (node) => node.focus() },
                text("console.dialog.close"),
              ),
            ),
          ]
        : form(),
    );

  async function go() {
    setOperator(given.operator.trim());
    [busy, problem] = [true, null];
    draw();
    try {
      result = await question.run(given, (reached) => {
        progress = reached;
        draw();
      });
      if (!result) return dialog.close();
    } catch (fault) {
      problem = /** @type {import("../../../engine/pages/static/common/api.js").Failure} */ (fault);
    } finally {
      busy = false;
    }
    draw();
  }

  dialog.setAttribute("aria-labelledby", "asked");
  dialog.oncancel = (event) => {
    if (busy) event.preventDefault();
  };
  dialog.onclose = () => {
    dialog.remove();
    question.after?.();
  };
  document.body.append(dialog);
  draw();
  dialog.showModal();
}
