/** What orders, steps and actions are called follows from what the app says. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { text } from "../../../engine/pages/static/common/words.js";
import {
  action,
  actionsOf,
  actionsOn,
  event,
  isOver,
  know,
  list,
  orderLook,
  stepLook,
  waiting,
  waitsForOperator,
} from "../static/words.js";

know({
  orders: {
    again: { word: "Trying again", mark: "again" },
    undone: { word: "Undone", mark: "undo", isOver: true },
    stuck: { word: "Stuck", mark: "error", waitsForOperator: true },
  },
  steps: {
    Running: { word: "Running", mark: "processing", mayBeTriedAgain: true },
    Completed: { word: "Completed", mark: "processed" },
  },
  actions: [
    {
      name: "hold",
      title: "Hold",
      button: "Hold it",
      effect: "Nothing starts.",
      danger: false,
      subject: "order",
      fields: [],
      lists: ["Pending"],
    },
  ],
  events: { expired: { isFailure: true } },
  lists: {
    open: { title: "All open", mark: "pending", parts: ["Stuck", "Pending"] },
    Stuck: { title: "Needs attention", mark: "error", parts: ["Stuck"], waitsForOperator: true },
  },
});

for (const [situation, look, word, over] of /** @type {const} */ ([
  ["again", "again", "Trying again", false],
  ["undone", "undo", "Undone", true],
  ["unheard-of", "pending", "unheard-of", false],
]))
  test(`an order that is ${situation} looks like "${look}" and is called "${word}"`, () => {
    assert.deepEqual(orderLook({ situation }), { look, word });
    assert.equal(isOver({ situation }), over);
  });

for (const [step, look, word] of /** @type {const} */ ([
  [{ state: "Running", failureCount: 0, threshold: 3 }, "processing", "Running"],
  [
    { state: "Running", failureCount: 1, threshold: 3 },
    "again",
    text("console.steps.again", { attempt: 2, threshold: 3 }),
  ],
  [{ state: "Completed", failureCount: 1, threshold: 3 }, "processed", "Completed"],
  [{ state: "Unheard" }, "pending", "Unheard"],
]))
  test(`a step with ${JSON.stringify(step)} looks like "${look}" and is called "${word}"`, () => {
    assert.deepEqual(stepLook(step), { look, word });
  });

test("an action that the app does not explain is called by its name", () => {
  assert.equal(action("hold").title, "Hold");
  assert.equal(action("unheard-of").title, "unheard-of");
});

test("a list offers what can be done to all of its orders", () => {
  assert.deepEqual(
    actionsOf("Pending").map(({ name }) => name),
    ["hold"],
  );
  assert.deepEqual(actionsOf("Error"), []);
});

test("a page asks for the actions on a kind of thing, and for the list of those that wait for somebody", () => {
  assert.deepEqual(
    actionsOn("order").map(({ name }) => name),
    ["hold"],
  );
  assert.deepEqual(actionsOn("message"), []);
  assert.equal(waiting(), "Stuck");
  assert.equal(waitsForOperator({ situation: "stuck" }), true);
  assert.equal(waitsForOperator({ situation: "unheard-of" }), false);
});

test("a list and an event that the app does not explain are shown as they are", () => {
  assert.deepEqual(list("open").parts, ["Stuck", "Pending"]);
  assert.deepEqual(list("Unheard"), { title: "Unheard", mark: "pending", parts: ["Unheard"] });
  assert.deepEqual([event("expired"), event("unheard-of")], [{ isFailure: true }, {}]);
});
