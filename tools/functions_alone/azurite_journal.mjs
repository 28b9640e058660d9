// A journal for Azurite, which by itself keeps what it was told in memory, and saves it every five seconds.
//
// Every change of one of its databases is in a file before the answer to the request is sent, as one line for each
// turn of the event loop: Azurite makes all changes of a transaction in one turn. A line that was cut short is no
// change. A process that is killed so loses nothing that it has answered; only a power failure may, since no write is
// forced onto the disk. When a database is saved, the files before that save go.

import fs from "node:fs";
import http from "node:http";
import path from "node:path";

const SAVE_EVERY_MS = 20_000;
const FEW = 10;

const journals = new Map(); // by database
const databases = new WeakMap(); // by collection
const waiting = new Set(); // journals with changes that are not in a file yet

class Journal {
  constructor(filename) {
    this.filename = filename;
    this.changes = [];
    this.generation = Math.max(0, ...this.generations()) + 1;
    this.fd = null;
    this.loading = false;
  }

  note(change) {
    if (this.loading) return;
    if (waiting.size === 0) setImmediate(flush);
    this.changes.push(JSON.stringify(change));
    waiting.add(this);
  }

  write() {
    this.fd ??= fs.openSync(this.path(this.generation), "w", 0o600);
    const line = Buffer.from(`[${this.changes.join()}]\n`);
    for (let written = 0; written < line.length; ) written += fs.writeSync(this.fd, line, written);
    this.changes = [];
  }

  // What comes from now on goes into another file; returns the number of the last one until now.
  next() {
    flush();
    if (this.fd !== null) fs.closeSync(this.fd);
    this.fd = null;
    return this.generation++;
  }

  forget(last) {
    for (const generation of this.generations()) if (generation <= last) fs.rmSync(this.path(generation));
  }

  *read() {
    for (const generation of this.generations()) {
      const lines = fs.readFileSync(this.path(generation), "utf8").split("\n");
      lines.pop(); // empty, or cut short
      for (const line of lines) yield* JSON.parse(line);
    }
  }

  generations() {
    const { dir, base } = path.parse(this.filename);
    const names = fs.existsSync(dir) ? fs.readdirSync(dir) : [];
    const found = names.filter((name) => name.startsWith(`${base}.journal.`));
    return found.map((name) => Number(name.split(".").at(-1))).sort((one, other) => one - other);
  }

  path(generation) {
    return `${this.filename}.journal.${generation}`;
  }
}

// Ends the process if that fails: an answer would promise what is not kept. Who started Azurite starts it again.
function flush() {
  for (const journal of waiting) {
    try {
      journal.write();
    } catch (error) {
      console.error(`the journal of ${journal.filename} cannot be written: ${error.message}`);
      process.exit(1);
    }
  }
  waiting.clear();
}

export function keepJournals(Loki) {
  before(http.ServerResponse.prototype, ["write", "end"], flush);
  watchCollections(Loki.Collection.prototype);
  watchDatabases(Loki.prototype);
}

function before(object, names, act) {
  for (const name of names) {
    const original = object[name];
    object[name] = function (...given) {
      act();
      return original.apply(this, given);
    };
  }
}

function note(collection, kind, what) {
  journals.get(databases.get(collection))?.note([kind, collection.name, what]);
}

function watchCollections(prototype) {
  const { insertOne, update, remove, removeBatchByPositions } = prototype;

  prototype.insertOne = function (...given) {
    const inserted = insertOne.apply(this, given);
    if (inserted) note(this, "put", inserted);
    return inserted;
  };

  prototype.update = function (document) {
    const updated = update.call(this, document);
    if (!Array.isArray(document)) note(this, "put", updated); // of several each comes by itself
    return updated;
  };

  prototype.remove = function (document) {
    const id = typeof document === "number" ? document : document?.$loki;
    const removed = remove.call(this, document);
    if (!Array.isArray(document)) note(this, "remove", id);
    return removed;
  };

  prototype.removeBatchByPositions = function (positions) {
    // Lokijs builds all indexes anew, even if nothing is removed. At each update of a message Azurite removes what has
    // expired, mostly nothing: with 9,000 messages on a queue that took all of its time.
    if (!positions.length) return;
    this.ensureId();
    const ids = positions.map((position) => this.idIndex[position]);
    // It does so too if few are removed, such as the content of one message. One by one they leave the indexes.
    if (ids.length <= FEW) return ids.forEach((id) => this.remove(id));
    removeBatchByPositions.call(this, positions);
    for (const id of ids) note(this, "remove", id);
  };
}

function watchDatabases(prototype) {
  const { addCollection, removeCollection, loadDatabase, saveDatabaseInternal, autosaveEnable } = prototype;

  prototype.autosaveEnable = function (...given) {
    this.autosaveInterval = SAVE_EVERY_MS;
    journals.set(this, new Journal(this.filename));
    autosaveEnable.apply(this, given);
  };

  prototype.addCollection = function (name, options) {
    const isNew = !this.collections.some((existing) => existing.name === name);
    const collection = addCollection.call(this, name, options);
    databases.set(collection, this);
    if (isNew) note(collection, "add", options);
    return collection;
  };

  prototype.removeCollection = function (name) {
    const collection = this.collections.find((existing) => existing.name === name);
    if (collection) note(collection, "drop");
    removeCollection.call(this, name);
  };

  prototype.loadDatabase = function (options, callback) {
    const journal = journals.get(this);
    if (!journal) return loadDatabase.call(this, options, callback);
    journal.loading = true;
    loadDatabase.call(this, options, (error) => {
      try {
        if (!error) carryOut(this, journal.read());
      } catch (unreadable) {
        error = unreadable;
      }
      journal.loading = false;
      callback(error);
    });
  };

  prototype.saveDatabaseInternal = function (callback) {
    const journal = journals.get(this);
    const last = journal?.next();
    saveDatabaseInternal.call(this, (error) => {
      if (!error) journal?.forget(last);
      if (error && !callback) console.error(`${this.filename} is not saved, its journal grows: ${error.message}`);
      callback?.(error);
    });
  };
}

// A change may be in what was loaded already: carried out once more, in their order, they come to the same.
function carryOut(database, changes) {
  const documents = new Map();
  for (const [kind, name, what] of changes) {
    if (kind === "add") database.addCollection(name, what);
    if (kind === "drop") database.removeCollection(name);
    if (kind === "add" || kind === "drop") documents.delete(name);
    else change(documentsOf(database, documents, name), kind, what);
  }
  for (const [name, byId] of documents) restore(database.getCollection(name), byId);
}

function documentsOf(database, documents, name) {
  if (!documents.has(name)) {
    const { data } = database.getCollection(name);
    documents.set(name, new Map(data.map((document) => [document.$loki, document])));
  }
  return documents.get(name);
}

function change(byId, kind, what) {
  if (kind === "put") byId.set(what.$loki, what);
  else byId.delete(what);
}

function restore(collection, byId) {
  collection.data = [...byId.values()].sort((one, other) => one.$loki - other.$loki);
  collection.maxId = Math.max(collection.maxId, collection.data.at(-1)?.$loki ?? 0);
  collection.idIndex = null;
  collection.ensureId();
  collection.ensureAllIndexes(true);
  for (const name of collection.uniqueNames) {
    delete collection.constraints.unique[name];
    collection.ensureUniqueIndex(name);
  }
  collection.dirty = true;
}
