/** Files for spreadsheets. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { asCsv as asActions, table } from "../static/audit.js";
import { csv } from "../static/csv.js";
import { asCsv } from "../static/rows.js";
import { know } from "../static/words.js";
import { all, giveStorage, textOf } from "../../../engine/pages/tests/support.js";

beforeEach(() => {
  giveStorage();
  know({ orders: { stuck: { word: "Error", mark: "error" } }, steps: {}, actions: [] });
});

test("a cell that begins like a formula is none", () => {
  const cells = ["=1+1", "+1", "-1", "@sum", "\t=1", "none left", 'say "no"', null];
  assert.equal(
    csv(
      ["a"],
      cells.map((cell) => [cell]),
    ),
    `"a"\r\n"'=1+1"\r\n"'+1"\r\n"'-1"\r\n"'@sum"\r\n"'\t=1"\r\n"none left"\r\n"say ""no"""\r\n""\r\n`,
  );
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
