// What the journal changes in lokijs, on which Azurite keeps everything.

import assert from "node:assert";
import { createRequire } from "node:module";
import { test } from "node:test";

import { keepJournals } from "../../azurite_journal.mjs";

const require = createRequire(new URL("../../node_modules/azurite/dist/src/azurite.js", import.meta.url));
const Loki = require("lokijs");
keepJournals(Loki);

function messages() {
  const collection = new Loki("queues").addCollection("messages", { indices: ["expires"] });
  for (let number = 0; number < 20; number += 1) collection.insert({ expires: number });
  collection.ensureIndex("expires");
  return collection;
}

test("removing nothing builds no index anew (load.md 4)", () => {
  const collection = messages();
  const before = collection.binaryIndices.expires.values;
  collection.remove(collection.chain().find({ expires: { $lt: 0 } }).data());
  collection.find({ expires: { $lt: 0 } });
  assert.equal(collection.binaryIndices.expires.values, before);
});

test("removing few builds no index anew either", () => {
  const collection = messages();
  const before = collection.binaryIndices.expires.values;
  collection.findAndRemove({ expires: 4 });
  assert.equal(collection.find({ expires: { $lte: 5 } }).length, 5);
  assert.equal(collection.binaryIndices.expires.values, before);
});

for (const count of [1, 3, 15]) {
  test(`what is removed is in no index: ${count}`, () => {
    const collection = messages();
    collection.remove(collection.chain().find({ expires: { $lt: count } }).data());
    const left = collection.find({ expires: { $lte: count + 1 } });
    assert.deepEqual(left.map((message) => message.expires), [count, count + 1]);
    assert.equal(collection.count(), 20 - count);
  });
}
