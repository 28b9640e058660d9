/** Why orders wait for a person, as the first page groups it. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { ago } from "../../../engine/pages/static/common/time.js";
import { text } from "../../../engine/pages/static/common/words.js";
import { card, groupsOf, takenOf } from "../static/causes.js";
import { know } from "../static/words.js";
import { all, giveStorage, textOf } from "../../../engine/pages/tests/support.js";

const until = new Date(Date.now() + 60_000).toISOString();
const first = new Date(Date.now() - 120_000).toISOString();
const cause = (step, agent, reason, count) => ({ step, agent, cause: `refused: ${reason}`, reason, count, first });
const alerts = (step, reason, unacknowledged, taken = /** @type {any[]} */ ([])) => ({
  step,
  cause: `refused: ${reason}`,
  unacknowledged,
  taken,
});
const GRACE = { by: "Grace", at: first, note: "calling the bank", count: 2 };
const overview = (agents, ...causes) => ({ agents, waitingForOperator: causes });
const drawn = (group) => card(group, false, /** @type {any} */ (null));

beforeEach(() => {
  giveStorage();
  know({
    orders: {},
    steps: {},
    actions: [],
    lists: { Stuck: { title: "", mark: "error", parts: [], waitsForOperator: true } },
  });
});

test("causes are told as the app has counted them, the most first, each with its list", () => {
  const groups = groupsOf(
    overview([], cause("stock", "stock", "none left", 3), cause("payment", "payment", "declined", 103)),
    [],
  );
  assert.deepEqual(
    groups.map(({ title, count }) => [title, count]),
    [
      ["declined", 103],
      ["none left", 3],
    ],
  );
  const [link] = all(drawn(groups[0]), "a");
  assert.equal(link.props.href, "#/orders?state=Stuck&step=payment&agent=payment&cause=refused%3A+declined");
});

test("a service whose circuit is open explains all that failed at it", () => {
  const open = [{ agent: "payment", openUntil: until }];
  const causes = [
    cause("pay", "payment", "timed out", 40),
    cause("capture", "payment", "no answer", 2),
    cause("ship", "shipment", "no", 5),
  ];
  const [payment, other] = groupsOf(overview(open, ...causes), []);
  assert.ok(payment.until);
  assert.match(payment.title, /payment/);
  assert.deepEqual([payment.count, other.count], [42, 5]);
  assert.deepEqual(
    all(drawn(payment), "a").map(textOf),
    [40, 2].map((count) => text("console.parts.orders", { count })),
  );
});

test("a card says who has taken its cause and when, and can be taken while an alert of it is not", () => {
  const known = [alerts("pay", "declined", [], [GRACE]), alerts("ship", "no", ["key"])];
  const groups = groupsOf(
    overview([], cause("pay", "payment", "declined", 9), cause("ship", "shipment", "no", 2)),
    known,
  );
  const taken = text("console.causes.taken-by", { operator: "Grace", ago: ago(first) });
  assert.ok(textOf(drawn(groups[0])).includes(`${taken}: calling the bank`));
  assert.deepEqual(
    groups.map((group) => all(drawn(group), "button").length),
    [0, 1],
  );
  assert.equal(takenOf(groups), 9);
});

test("causes at two agents, and orders whose rows cannot be read, are cards of their own", () => {
  const unreadable = ["row 1", "row 2"].map((reason) => ({ ...cause(null, null, reason, 1), cause: null }));
  const causes = [cause("pay", "bank", "declined", 9), cause("pay", "backup", "declined", 2), ...unreadable];
  const groups = groupsOf(overview([], ...causes), [alerts("", "", ["key"])]);
  assert.deepEqual(
    groups.map(({ count }) => count),
    [9, 2, 1, 1],
  );
  assert.deepEqual(groups[3].unacknowledged, []);
});

test("where not all orders were counted, each cause has at least so many", () => {
  const [group] = groupsOf(overview([], cause("pay", "payment", "declined", 9)), []);
  const shown = textOf(card(group, true, /** @type {any} */ (null)));
  assert.ok(shown.startsWith(text("console.causes.at-least", { count: 9 })));
});

test("of all causes the first is the one to begin with", () => {
  const [group] = groupsOf(overview([], cause("pay", "payment", "declined", 9)), []);
  const look = (isFirst) => all(card(group, false, /** @type {any} */ (null), isFirst), "a")[0].props.class;
  assert.match(look(true), /main/);
  assert.doesNotMatch(look(false), /main/);
});

test("a cause leads to what to do, where somebody said where that is; an open circuit to its own place", () => {
  const lists = { Stuck: { title: "", mark: /** @type {const} */ ("error"), parts: [], waitsForOperator: true } };
  const runbook = {
    "OrderProcessing.OrderFailed": "https://d.example.com/#a",
    "circuit-open": "https://d.example.com/#b",
  };
  const open = [{ agent: "payment", openUntil: until }];
  const [one, other] = [[], open].map((agents) => groupsOf(overview(agents, cause("pay", "payment", "no", 9)), [])[0]);
  const links = (group) => all(drawn(group), "a").filter(({ props }) => props.class === "outside");
  assert.deepEqual(links(one), []);
  know({ orders: {}, steps: {}, actions: [], lists, runbook });
  assert.deepEqual(
    [one, other].map((group) => links(group)[0].props.href),
    Object.values(runbook),
  );
});
