/** How the dialog of an action asks for its arguments, and what is sent of them. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { argumentsOf, fieldsOf } from "../static/fields.js";
import { giveStorage } from "../../../engine/pages/tests/support.js";

const asked = (kind, name = kind, more = {}) => ({ name, label: name, kind, choices: [], isRequired: true, ...more });
const SETTLE = [
  asked("step", "step", { isRequired: false }),
  asked("flag", "wasDone"),
  asked("object", "answer", { isRequired: false }),
  asked("flag", "confirmLateEffect", { isRequired: false }),
];
const GIVEN = { operator: "grace", note: "looked there", step: "pay", wasDone: "false", answer: "" };

beforeEach(() => giveStorage());

test("a step is one of those that the action can concern", () => {
  const [{ choices }] = fieldsOf(SETTLE, ["pay", "ship"]);
  assert.deepEqual(choices, ["pay", "ship"]);
});

test("nothing is said to be so unless it is chosen", () => {
  const flags = fieldsOf(SETTLE, ["pay"]).filter(({ words }) => words);
  const chosen = Object.fromEntries(flags.map(({ name, choices }) => [name, choices?.[0] ?? ""]));
  assert.deepEqual(argumentsOf(SETTLE, { ...GIVEN, ...chosen }), {
    step: "pay",
    wasDone: false,
    confirmLateEffect: false,
  });
});

test("what is left empty is not sent, and may be if the action does not require it", () => {
  assert.deepEqual(argumentsOf(SETTLE, GIVEN), { step: "pay", wasDone: false });
  assert.deepEqual(
    fieldsOf(SETTLE, []).map(({ isOptional }) => isOptional),
    [true, false, true, true],
  );
});

test("an object is typed as JSON, and anything else is refused", () => {
  const done = { ...GIVEN, wasDone: "true", answer: '{"reference": "P-1"}' };
  assert.deepEqual(argumentsOf(SETTLE, done), { step: "pay", wasDone: true, answer: { reference: "P-1" } });
  assert.throws(() => argumentsOf(SETTLE, { ...done, answer: "[1]" }));
});

test("a time is sent as a moment, and a text or a choice as it is", () => {
  const more = [asked("time"), asked("text"), asked("choice", "choice", { choices: ["a", "b"] })];
  const [time, typed, chosen] = fieldsOf(more, []);
  assert.deepEqual([time.type, typed.type, chosen.choices], ["datetime-local", "text", ["a", "b"]]);
  const sent = argumentsOf(more, { time: "2026-01-31T10:00", text: "x", choice: "b" });
  assert.deepEqual(sent, { time: new Date(2026, 0, 31, 10).toISOString(), text: "x", choice: "b" });
});
