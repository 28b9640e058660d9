/** Files for spreadsheets. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { beforeEach, test } from "node:test";

import { asCsv as asActions, table } from "../static/audit.js";
import { csv, fileOf } from "../static/csv.js";
import { asCsv } from "../static/rows.js";
import { know } from "../static/words.js";
import { all, giveStorage, textOf } from "../../../engine/pages/tests/support.js";

beforeEach(() => {
  giveStorage();
  know({ orders: { stuck: { word: "Error", mark: "error" } }, steps: {}, actions: [] });
});

const CELLS = JSON.parse(readFileSync(new URL("../../../tests/data/inputs/csv_cells.json", import.meta.url), "utf8"));

test("a cell that begins like a formula is none (bugs2 52)", () => {
  for (const cell of CELLS["taken for a formula"]) assert.equal(csv([], [[cell]]), `\r\n"'${cell}"\r\n`);
  for (const cell of CELLS["taken as they are"]) assert.equal(csv([], [[cell]]), `\r\n"${cell}"\r\n`);
});

test("quotes in a cell are doubled, and nothing is an empty cell", () => {
  assert.equal(csv(["a", "b"], [['say "no"', null]]), `"a","b"\r\n"say ""no""",""\r\n`);
});

test("a file that does not hold all says so in its name (bugs 14)", () => {
  assert.equal(fileOf("orders", 200, true), "orders.csv");
  assert.equal(fileOf("orders", 200, false), "orders-first-200.csv");
});

test("orders are saved with id, state, step, cause, reason and times", () => {
  const order = {
    orderId: "b00-1",
    situation: "stuck",
    failedSteps: ["stock"],
    cause: "refused: none left",
    reason: "none left",
    placedAt: "p",
    updatedAt: "u",
  };
  assert.equal(asCsv([order]).split("\r\n")[1], '"b00-1","Error","stock","refused: none left","none left","","p","u"');
});

test("what operators did is told and saved with who did it and why", () => {
  const entry = {
    at: "2026-01-31T08:00:00Z",
    orderId: "b00-1",
    operator: "operator/Grace",
    event: "held",
    detail: "a wrong price",
  };
  assert.deepEqual(
    all(table([entry]), "td")
      .slice(1)
      .map(textOf),
    ["Grace", "held", "b00-1", "a wrong price"],
  );
  assert.equal(asActions([entry]).split("\r\n")[1], '"2026-01-31T08:00:00Z","Grace","held","b00-1","a wrong price"');
});
