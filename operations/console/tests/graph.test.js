/** The workflow as a picture. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { text } from "../../../engine/pages/static/common/words.js";
import { columns, graph } from "../static/graph.js";
import { know } from "../static/words.js";
import { all, textOf } from "../../../engine/pages/tests/support.js";

const step = (name, ...after) => ({ name, after, state: "NotStarted", failureCount: 0, threshold: 3 });

test("a step stands one column after the last of those that have to be done before it", () => {
  const steps = [step("stock"), step("payment", "stock"), step("shipment", "stock", "payment"), step("gift")];
  assert.deepEqual(columns(steps), [["stock", "gift"], ["payment"], ["shipment"]]);
});

test("steps of a column stand as those before them do, so that lines do not cross", () => {
  const steps = [step("a"), step("b"), step("of b", "b"), step("of a", "a")];
  assert.deepEqual(columns(steps), [
    ["a", "b"],
    ["of a", "of b"],
  ]);
});

const two = [step("stock"), step("payment", "stock")];
const places = (drawn) => all(drawn, "g").map(({ props }) => props.transform);
const edges = (drawn) => all(drawn, "path").filter(({ props }) => props.class === "edge");

test("where there is room it goes from left to right, and else down", () => {
  const [across, down] = [graph(two, true), graph(two, false)];
  assert.equal(across.props.viewBox, "-1 -1 406 58");
  assert.deepEqual(places(across), ["translate(0 0)", "translate(224 0)"]);
  assert.equal(down.props.viewBox, "-1 -1 182 158");
  assert.deepEqual(places(down), ["translate(0 0)", "translate(0 100)"]);
});

test("a line goes from the end of a step to the beginning of the one after it", () => {
  assert.deepEqual(
    edges(graph(two, true)).map(({ props }) => [props.key, props.d]),
    [["stock>payment", "M180 28C202 28 202 28 224 28"]],
  );
  assert.deepEqual(
    edges(graph(two, false)).map(({ props }) => props.d),
    ["M90 56C90 78 90 78 90 100"],
  );
});

test("no line comes from a step that the order does not have", () => {
  assert.deepEqual(edges(graph([step("payment", "gone")], true)), []);
});

test("a column of fewer steps stands in the middle", () => {
  const steps = [step("stock"), step("one", "stock"), step("other", "stock")];
  assert.deepEqual(places(graph(steps, true)), ["translate(0 38)", "translate(224 0)", "translate(224 76)"]);
});

test("the picture is told in words", () => {
  know({ orders: {}, steps: { NotStarted: { word: "Not started", mark: "pending" } }, actions: [] });
  assert.equal(
    graph(two, true).props["aria-label"],
    `stock: Not started; ${text("console.graph.after", { state: "payment: Not started", steps: "stock" })}`,
  );
});

test("a box that is too narrow for its word has the mark alone", () => {
  const words = (space) => all(graph([step("a"), step("b"), step("c")], false, space), "text").map(textOf);
  assert.deepEqual(words(1000), ["a", "Not started", "b", "Not started", "c", "Not started"]);
  assert.deepEqual(words(300), ["a", "b", "c"]);
});

test("where there is less room, boxes are narrower, but not so narrow that their words do not fit", () => {
  const steps = [step("stock"), step("payment"), step("shipment", "stock", "payment")];
  const width = (...space) => graph(steps, ...space).props.width;
  assert.equal(width(false, 358), 358);
  assert.equal(width(false, 100), 2 * 96 + 20 + 2);
  assert.equal(width(false, 1000), 2 * 180 + 20 + 2);
  assert.equal(width(true, 100), 2 * 180 + 44 + 2);
});
