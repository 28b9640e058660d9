/** The history of an order. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { historyOf } from "../static/history.js";
import { know } from "../static/words.js";
import { all, giveStorage, textOf } from "../../../engine/pages/tests/support.js";

beforeEach(giveStorage);

test("of a long history the newest entries are shown, the last one first", () => {
  const at = "2026-01-31T12:00:00Z";
  const history = Array.from({ length: 60 }, (_, number) => ({ at, event: `e${number}`, detail: "", actor: "t" }));
  const shown = all(
    historyOf({ history }, { failuresOnly: false, all: false }, () => {}),
    "strong",
  );
  assert.deepEqual([shown.length, textOf(shown[0]), textOf(shown[49])], [50, "e59", "e10"]);
});

test("what went wrong, and what changed nothing, is what the app says of the event", () => {
  know({
    orders: {},
    steps: {},
    actions: [],
    events: { burnt: { isFailure: true }, noted: { isFailure: true, changesNothing: true }, baked: {} },
  });
  const history = ["burnt", "noted", "baked", "unheard-of"].map((event) => ({
    at: "2026-01-31T12:00:00Z",
    event,
    detail: "",
    actor: "t",
  }));
  const rows = all(
    all(
      historyOf({ history }, { failuresOnly: true, all: false }, () => {}),
      "tbody",
    ),
    "tr",
  );
  assert.deepEqual(
    rows.map((row) => [textOf(all(row, "strong")), row.props.class]),
    [
      ["noted", "grey"],
      ["burnt", ""],
    ],
  );
});
