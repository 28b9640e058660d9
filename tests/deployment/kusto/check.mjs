// Parses and analyses every query of the alerts and of the workbook with Microsoft's own language service:
// npm ci --prefix tests/deployment/kusto && node tests/deployment/kusto/check.mjs
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(import.meta.url);
require("@kusto/language-service-next/bridge.min.js");
require("@kusto/language-service-next/Kusto.Language.Bridge.min.js");
const { GlobalState, KustoCode, Symbols } = globalThis.Kusto.Language;
const infra = join(import.meta.dirname, "../../../infra");

// The columns that the queries may use (learn.microsoft.com/azure/azure-monitor/reference/tables).
const COMMON =
  "timestamp: datetime, itemCount: int, customDimensions: dynamic, operation_Name: string, operation_Id: string, " +
  "cloud_RoleName: string, cloud_RoleInstance: string";
const TABLES = {
  traces: `(${COMMON}, message: string, severityLevel: int)`,
  requests: `(${COMMON}, id: string, name: string, url: string, success: bool, resultCode: string, duration: real)`,
  exceptions: `(${COMMON}, type: string, problemId: string, outerMessage: string)`,
  Usage: "(TimeGenerated: datetime, DataType: string, Quantity: real, QuantityUnit: string, IsBillable: bool)",
};

/** Yields each query with its name; what Bicep or the workbook fill in is a number or a text here. */
function* queries() {
  for (const file of readdirSync(join(infra, "queries"))) {
    const text = readFileSync(join(infra, "queries", file), "utf8");
    yield [file, text.replaceAll("MAXIMUM_INSTANCES", "100").replaceAll("DAILY_LOG_GB", "1")];
  }
  const workbook = JSON.parse(readFileSync(join(infra, "workbook.json"), "utf8"));
  for (const item of items(workbook)) {
    if (typeof item.query !== "string") continue;
    const filled = item.query.replace(/\{\w+:grain\}/g, "1h").replace(/\{\w+\}/g, "1");
    yield [`workbook.json: ${item.title}`, filled];
  }
}

/** Yields every object of a JSON value. */
function* items(value) {
  if (value === null || typeof value !== "object") return;
  if (!Array.isArray(value)) yield value;
  for (const part of Object.values(value)) yield* items(part);
}

/** Returns the message of each diagnostic of a query. */
function diagnostics(query, globals) {
  const code = KustoCode.ParseAndAnalyze(query, globals);
  const found = code.GetDiagnostics();
  return Array.from({ length: found.Count }, (_, index) => found.getItem(index).Message);
}

const tables = Object.entries(TABLES).map(([name, columns]) => Symbols.TableSymbol.From(columns).WithName(name));
const database = new Symbols.DatabaseSymbol.ctor("log", tables);
const globals = GlobalState.Default.WithDatabase(database);

let checked = 0;
let faults = 0;
for (const [name, query] of queries()) {
  checked += 1;
  for (const message of diagnostics(query, globals)) {
    faults += 1;
    console.error(`${name}: ${message}`);
  }
}
console.log(`${checked} queries, ${faults} diagnostics`);
const blind = diagnostics("traces | where missing > 1", globals).length === 0;
if (blind) console.error("The language service finds no unknown column: the check sees nothing.");
process.exit(faults > 0 || checked < 16 || blind ? 1 : 0);
