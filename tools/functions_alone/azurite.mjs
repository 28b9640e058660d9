// Azurite with a journal. Stubs (package.json) replace what it loads at every start for telemetry and SQL databases.

import http from "node:http";
import { createRequire } from "node:module";

import { keepJournals } from "./azurite_journal.mjs";

const require = createRequire(new URL("node_modules/azurite/dist/src/azurite.js", import.meta.url));

keepJournals(require("lokijs"));

// Without this Azurite never ends while somebody holds a connection on which nothing was asked yet.
const LET_GO_MS = 1000;
const { close } = http.Server.prototype;
http.Server.prototype.close = function (...given) {
  setTimeout(() => this.closeAllConnections(), LET_GO_MS).unref();
  return close.apply(this, given);
};

// Azurite heeds one signal of a kind, and another one would kill it while it saves; Linux sends a child more than one when
// its parent dies. Before Azurite listens for signals it has nothing to save.
let saving = false;
for (const signal of ["SIGTERM", "SIGINT"]) {
  process.on(signal, () => {
    saving ||= process.listenerCount(signal) > 1;
    if (!saving) process.exit();
  });
}

require("./azurite.js");
