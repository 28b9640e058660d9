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
  for (let number = 0; number < 10; number += 1) collection.insert({ expires: number });
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

test("what is removed is in no index", () => {
  const collection = messages();
  collection.remove(collection.chain().find({ expires: { $lt: 3 } }).data());
  assert.deepEqual(collection.find({ expires: { $lte: 4 } }).map((each) => each.expires), [3, 4]);
});
