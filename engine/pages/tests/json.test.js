/** JSON is read and written with the numbers that stand in it, whatever JavaScript makes of them. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { parse, rewrites } from "../static/common/json.js";

const NUMBERS = JSON.parse(readFileSync(new URL("../../../tests/data/numbers.json", import.meta.url), "utf8"));

for (const number of NUMBERS.exact) {
  test(`${number} is written as it was typed`, () => {
    const text = `{"a":[${number},{"b":${number}}],"c":"${number} \\" ${number}"}`;
    assert.equal(JSON.stringify(parse(text, rewrites)), text);
  });

  test(`${number} keeps its value, and is a plain number if JavaScript has it`, () => {
    const [found] = parse(`[${number}]`);
    assert.equal(JSON.stringify([found]), typeof found === "number" ? `[${Number(number)}]` : `[${number}]`);
  });
}

test("only a number that JavaScript would change is no plain number", () => {
  const found = parse('{"id":9007199254740993,"amount":12345678901234567.89,"few":1e2,"share":0.30000000000000004}');
  assert.deepEqual(
    Object.values(found).map((value) => typeof value),
    ["object", "object", "number", "number"],
  );
  assert.ok(JSON.stringify(found, null, 2).includes('"id": 9007199254740993,\n  "amount": 12345678901234567.89,'));
});

test("what is no JSON is refused as it was written", () => {
  for (const text of ['{"a": 01}', "[1.]", '["a', "[12345678901234567890 5]", "{12345678901234567890: 1}", "[NaN]"]) {
    assert.throws(() => parse(text), SyntaxError);
  }
});
