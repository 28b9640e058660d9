/** The page with the picture: how often it asks, and what becomes of a story when something that is clicked fails. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { text } from "../../../engine/pages/static/common/words.js";
import { picturePage } from "../static/picture/page.js";
import { know } from "../static/words.js";
import { all, giveDocument, giveStorage, textOf } from "../../../engine/pages/tests/support.js";

const LIVE = {
  ...{ at: "2026-01-31T08:15:00Z", submissions: 0, groups: [], atLeast: false, orders: [] },
  ...{ breakers: [{ agent: "payment", openUntil: null, triesSince: null }], instances: [], lastSweep: null },
};
const SIMULATED = {
  services: [{ name: "payment", faults: [] }],
  sample: { steps: [{ name: "payment", services: ["payment"], waits: true }] },
};
const BREAKS = "/simulator/payment/faults";
const PLACES = "/simulator/sample";
const [LOOK, RUNNER] = ["/api/operator/live", "/local/host"];

const settled = () => new Promise((resolve) => setImmediate(resolve));
/** What the page shows. @type {any[]} */
let shown = [];
/** The paths that fail. @type {Set<string>} */
let failing;
/** How many sample orders were placed. */
let placed;
/** How often the app was asked what the picture shows. */
let looks;

beforeEach(() => {
  giveStorage();
  giveDocument().querySelector = () => ({ clientWidth: 1144 });
  know({ orders: {}, steps: {}, actions: [] });
  [failing, placed, looks, shown] = [new Set(), 0, 0, []];
  Object.assign(globalThis, {
    innerWidth: 1144,
    matchMedia: () => ({ matches: true, addEventListener: () => {}, removeEventListener: () => {} }),
    getComputedStyle: () => ({ paddingLeft: "0", paddingRight: "0" }),
    ...{ addEventListener: () => {}, removeEventListener: () => {}, dispatchEvent: () => true },
  });
});

/** Open the page; it is told by the app what stands above, and by a runner, where there is one, of hosts. */
async function opened(context, runner = {}) {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const answers = { [LOOK]: LIVE, "/simulator": SIMULATED, [BREAKS]: {}, [PLACES]: { orderId: "a" }, ...runner };
  context.mock.method(globalThis, "fetch", async (path) => {
    if (path === PLACES) placed += 1;
    if (path === LOOK) looks += 1;
    if (failing.has(path)) return Response.json({ title: "It failed" }, { status: 503 });
    return answers[path] ? Response.json(answers[path]) : Response.json({}, { status: 404 });
  });
  const place = { show: (...children) => void (shown = children), say: () => {}, askKey: () => {}, again: () => {} };
  const page = picturePage(/** @type {any} */ (place));
  context.after(() => page.stop());
  await seen(/In numbers/);
}

/** Wait until this is so. @param {() => boolean} wanted */
async function until(wanted) {
  for (let turns = 0; turns < 1000 && !wanted(); turns += 1) await settled();
  assert.ok(wanted(), `${wanted}: ${textOf(shown)}`);
}

const BEGUN = text("console.scenes.hangs-begin", { service: "payment", count: 30 });
const TOLD = new RegExp(`${BEGUN}.*${text("console.picture.stop")}`);

/** Wait until the page shows this. @param {RegExp} wanted */
const seen = (wanted) => until(() => wanted.test(textOf(shown)));

const press = (name) =>
  all(shown, "button")
    .find((candidate) => textOf(candidate) === name)
    .props.onClick();

test("a story goes on though something else that was clicked failed, and can still be stopped", async (context) => {
  await opened(context);
  press(text("console.scenes.hangs"));
  await seen(TOLD);
  await until(() => placed === 30);
  failing.add(PLACES);
  press(text("console.faults.send", { count: 10 }));
  await seen(/It failed/);
  assert.match(textOf(shown), TOLD);
});

test("a story that cannot do its part is over", async (context) => {
  await opened(context);
  failing.add(PLACES);
  press(text("console.scenes.hangs"));
  await seen(/It failed/);
  assert.ok(!textOf(shown).includes(BEGUN) && !textOf(shown).includes(text("console.picture.stop")));
});

const HOSTS = { hosts: [{ name: "host-1", pid: 1, runs: true, at: "2026-01-31T08:15:00Z" }] };
for (const [where, runner, seconds] of /** @type {const} */ ([
  ["each second where a runner tells of hosts", { [RUNNER]: HOSTS }, 1],
  ["every ten seconds elsewhere", {}, 10],
])) {
  test(`it asks ${where}, and no sooner`, async (context) => {
    await opened(context, runner);
    for (let turns = 0; turns < 100; turns += 1) await settled();
    const before = looks;
    context.mock.timers.tick(seconds * 1000 - 1);
    for (let turns = 0; turns < 100; turns += 1) await settled();
    assert.equal(looks, before);
    context.mock.timers.tick(1);
    await until(() => looks === before + 1);
  });
}
