/** The picture of the pattern: where dots stand and come from, which host is gone, and how stories go on. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { text } from "../../../engine/pages/static/common/words.js";
import { hostOf } from "../static/picture/hosts.js";
import { modelOf, pointIn } from "../static/picture/model.js";
import { placesOf } from "../static/picture/places.js";
import { begun, goneOn, isFinished, sceneOf, STORIES } from "../static/picture/stories.js";
import { bySteps } from "../static/picture/text.js";
import { know } from "../static/words.js";

const NOW = Date.parse("2026-01-31T08:15:00Z");
const at = (seconds) => new Date(NOW + seconds * 1000).toISOString();
const HOW = { width: 1144, still: false, now: NOW };
const [ONE, TWO] = ["host-1-11-aaaaaa", "host-2-22-bbbbbb"];

beforeEach(() =>
  know({
    orders: {
      running: { word: "Running", mark: "processing" },
      undoing: { word: "Being undone", mark: "undo" },
      stuck: { word: "Stuck", mark: "error" },
    },
    steps: {},
    actions: [],
  }),
);

const order = (orderId, stands, ...requests) => ({
  orderId,
  stands,
  situation: stands === "operator" ? "stuck" : "running",
  step: "payment",
  attempt: 1,
  threshold: 3,
  requests: requests.map(([agent, instance = null]) => ({ agent, instance })),
});

const answer = (orders, more = {}, rest = {}) => ({
  live: {
    at: at(0),
    submissions: 0,
    groups: [],
    atLeast: false,
    orders,
    breakers: ["payment", "stock"].map((agent) => ({ agent, openUntil: null, triesSince: null })),
    instances: [ONE, TWO].map((name) => ({ name, at: at(-1), agents: ["payment"], running: 0 })),
    lastSweep: null,
    ...more,
  },
  services: [{ name: "payment", faults: [] }],
  sample: { steps: [{ name: "payment", services: ["payment"], waits: true }] },
  hosts: [
    { name: "host-1", pid: 1, runs: true, endedAt: null },
    { name: "host-2", pid: 2, runs: true, endedAt: null },
  ],
  ...rest,
});

const dot = (model, key) => model.dots.find((candidate) => candidate.key === key);
const count = (model, key) => model.areas.find((area) => area.key === key).count;
const isWithin = ({ x, y }, box) => x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height;

test("an order stands where its row says, and with each agent that works on it", () => {
  const model = modelOf(
    answer([order("a", "scheduler"), order("b", "agent", ["payment", ONE], ["stock"]), order("c", "operator")]),
    null,
    HOW,
  );
  assert.equal(dot(model, "a").area, "scheduler");
  assert.deepEqual([dot(model, "b").area, dot(model, "b 1").area], ["agent payment", "requests stock"]);
  assert.ok(isWithin(dot(model, "b"), model.places.lanes.payment.agent));
  assert.ok(isWithin(dot(model, "b 1"), model.places.lanes.stock.requests));
  assert.deepEqual([dot(model, "c").area, dot(model, "c").look], ["operator", "error"]);
  assert.equal(count(model, "requests stock"), 1);
});

test("a dot comes from where its order was; a new one from the queue", () => {
  const before = modelOf(answer([order("a", "scheduler")]), null, HOW);
  const model = modelOf(answer([order("a", "agent", ["payment"], ["stock"]), order("b", "scheduler")]), before, HOW);
  const was = dot(before, "a");
  assert.deepEqual(dot(model, "a").from, { x: was.x, y: was.y });
  assert.deepEqual(dot(model, "a 1").from, { x: was.x, y: was.y });
  assert.ok(isWithin(dot(model, "b").from, model.places.queue));
});

test("an order that is open no more has ended, as what it was seen at last", () => {
  const undoing = { ...order("b", "scheduler"), situation: "undoing" };
  const before = modelOf(answer([order("a", "scheduler"), undoing]), null, HOW);
  const model = modelOf(answer([]), before, HOW);
  assert.deepEqual([model.over, dot(model, "a").look, dot(model, "b").look], [2, "processed", "undo"]);
  assert.equal(modelOf(answer([]), model, HOW).over, 2);
});

test("an order of which nothing could be read has not ended, and is not drawn twice when it can be again", () => {
  const both = [order("a", "scheduler"), order("b", "operator")];
  const before = modelOf(answer(both), null, HOW);
  const less = modelOf(answer([both[1]], { atLeast: true }), before, HOW);
  assert.deepEqual([less.over, less.ended, less.dots.map(({ key }) => key)], [0, [], ["b"]]);
  const again = modelOf(answer(both), less, HOW);
  assert.deepEqual([again.over, again.dots.map(({ key }) => key)], [0, ["a", "b"]]);
  const ended = modelOf(answer([both[1]]), less, HOW);
  assert.deepEqual([ended.over, dot(ended, "a").area], [1, "over"]);
});

test("an order that is open again is drawn once", () => {
  const ended = modelOf(answer([]), modelOf(answer([order("a", "scheduler")]), null, HOW), HOW);
  assert.equal(dot(ended, "a").area, "over");
  const again = modelOf(answer([order("a", "scheduler")]), ended, HOW);
  assert.deepEqual([again.dots.map(({ area }) => area), again.ended], [["scheduler"], []]);
});

test("an order that waits for an agent which this app does not have is drawn with those that wait", () => {
  const orders = [order("a", "agent", ["gone"], ["payment", ONE]), order("b", "agent", ["gone", TWO])];
  const model = modelOf(answer(orders), null, HOW);
  assert.deepEqual(
    model.dots.map(({ key, area }) => [key, area]),
    [
      ["a", "later"],
      ["a 1", "agent payment"],
      ["b", "later"],
    ],
  );
  assert.ok(isWithin(dot(model, "b"), model.places.kept.later));
  assert.equal(count(model, "later"), 2);
  const groups = [{ stands: "agent", agent: "gone", step: "payment", count: 300 }];
  assert.equal(count(modelOf(answer(null, { groups }), null, HOW), "later"), 300);
});

test("who wants no motion gets numbers; so does who has more orders than can be drawn", () => {
  const still = modelOf(answer([order("a", "scheduler")]), null, { ...HOW, still: true });
  assert.deepEqual([still.dots, count(still, "scheduler")], [null, 1]);
  const groups = [
    { stands: "scheduler", agent: null, step: "payment", count: 300 },
    { stands: "agent", agent: "payment", step: "payment", count: 30 },
  ];
  const many = modelOf(answer(null, { groups, atLeast: true }), still, HOW);
  assert.deepEqual([many.dots, many.over], [null, 0]);
  const bars = many.areas.map(({ key, count, share }) => [key, count, share]).filter(([, count]) => count);
  assert.deepEqual(bars, [
    ["scheduler", 300, 1],
    ["requests payment", 30, 0.1],
  ]);
});

test("dots stand beside each other, and those without room on the last place", () => {
  const box = { x: 100, y: 0, width: 48, height: 94 };
  assert.deepEqual(pointIn(box, 0), { x: 110, y: 34 });
  assert.deepEqual(pointIn(box, 1), { x: 124, y: 34 });
  assert.deepEqual(pointIn(box, 2), { x: 110, y: 48 });
  assert.deepEqual(pointIn(box, 99), pointIn(box, 5));
});

test("on a phone the parts stand below each other, and none is wider than it", () => {
  for (const width of [328, 358, 1144]) {
    const places = placesOf(["payment", "stock"], ["host-1", "host-2", "host-3"], width);
    const lanes = Object.values(places.lanes).flatMap((lane) => Object.values(lane));
    const all = [
      places.queue,
      places.scheduler,
      ...lanes,
      places.store,
      places.supervisor,
      ...Object.values(places.hosts),
    ];
    for (const box of [...all, ...Object.values(places.kept)]) {
      assert.ok(box.width > 60 && box.x >= 0 && box.x + box.width <= width + 0.01, `${width}: ${JSON.stringify(box)}`);
      assert.ok(box.y + box.height <= places.height + 0.01);
    }
    assert.equal(places.wide, width > 1000);
  }
});

test("numbers say at which steps orders are", () => {
  const group = (step, count, stands = "agent") => ({ stands, agent: "payment", step, count });
  assert.equal(bySteps([group("payment", 5), group("capture", 1), group("payment", 2)]), "payment 7, capture 1");
  assert.equal(bySteps([]), "");
});

test("a breaker is open until its time, and then one call tries", () => {
  const breakers = [
    { agent: "payment", openUntil: at(5), triesSince: null },
    { agent: "stock", openUntil: null, triesSince: at(-1) },
  ];
  const seen = answer([], { breakers });
  assert.deepEqual(modelOf(seen, null, HOW).breakers, {
    payment: { state: "open", until: at(5) },
    stock: { state: "tries", until: null },
  });
  assert.equal(modelOf(seen, null, { ...HOW, now: NOW + 6000 }).breakers.payment.state, "closed");
});

test("what is broken for one order alone is not broken", () => {
  const broken = (match) => ({ services: [{ name: "payment", faults: [{ mode: "hang", match }] }] });
  assert.equal(modelOf(answer([], {}, broken({ orderId: "a" })), null, HOW).faults.payment, null);
  assert.equal(modelOf(answer([], {}, broken({})), null, HOW).faults.payment.mode, "hang");
});

test("an instance is on the host that its name begins with", () => {
  assert.equal(hostOf("host-1-11-aaaaaa"), "host-1");
  assert.equal(hostOf("0a1b2c3d4e5f-7-abcdef"), "0a1b2c3d4e5f");
});

const dead = [
  { name: "host-1", pid: 1, runs: true, endedAt: null },
  { name: "host-2", pid: 3, runs: true, endedAt: at(0) },
];
const host = (model, name) => model.hosts.find((candidate) => candidate.name === name);
const sweep = (seconds, recovered) => ({ lastSweep: { at: at(seconds), instance: ONE, recovered } });

test("a host is grey from its end until nothing of what it had is left, and the supervisor says what it found", () => {
  const left = [order("a", "agent", ["payment", TWO]), order("b", "agent", ["payment", ONE])];
  const ended = modelOf(answer(left, {}, { hosts: dead }), null, HOW);
  assert.deepEqual([host(ended, "host-1").gone, host(ended, "host-2").gone], [false, true]);
  assert.deepEqual([dot(ended, "a").lost, dot(ended, "b").lost], [true, false]);
  const nothing = modelOf(answer(left, sweep(2, 0), { hosts: dead }), ended, HOW);
  assert.equal(host(nothing, "host-2").gone, true);
  const found = modelOf(answer(left, sweep(15, 7), { hosts: dead }), nothing, HOW);
  const same = modelOf(answer(left, sweep(15, 7), { hosts: dead }), found, HOW);
  const more = modelOf(answer([left[1]], sweep(17, 1), { hosts: dead }), same, HOW);
  assert.deepEqual(
    [ended, nothing, found, same, more].map((model) => [
      host(model, "host-2").loss.found,
      host(model, "host-2").loss.after,
    ]),
    [
      [0, null],
      [0, null],
      [7, 15],
      [7, 15],
      [8, 15],
    ],
  );
  assert.deepEqual([host(more, "host-2").gone, host(more, "host-1").leads], [false, true]);
  const later = modelOf(answer([], sweep(60, 5), { hosts: dead }), more, HOW);
  assert.equal(host(later, "host-2").loss.found, 8);
  assert.equal(dot(modelOf(answer(left, sweep(61, 0), { hosts: dead }), later, HOW), "a").lost, false);
});

test("a host that had nothing is grey until a sweep that began after its end", () => {
  const soon = modelOf(answer([], sweep(2.9, 0), { hosts: dead }), null, HOW);
  const late = modelOf(answer([], sweep(3, 0), { hosts: dead }), soon, HOW);
  assert.deepEqual([host(soon, "host-2").gone, host(late, "host-2").gone], [true, false]);
});

test("a host stays grey while not all orders are told: it may have had one of the others", () => {
  for (const live of [answer(null, sweep(15, 7)), answer([], { ...sweep(15, 7), atLeast: true })]) {
    const seen = modelOf({ ...live, hosts: dead }, null, HOW);
    assert.deepEqual([host(seen, "host-2").gone, host(seen, "host-2").loss.isOver], [true, false]);
    const all = modelOf(answer([], sweep(15, 7), { hosts: dead }), seen, HOW);
    assert.deepEqual([host(all, "host-2").gone, host(all, "host-2").loss.found], [false, 7]);
  }
});

test("a host that ends once more is grey once more, and what was found before does not count", () => {
  const first = modelOf(answer([], sweep(15, 7), { hosts: dead }), null, HOW);
  assert.equal(host(first, "host-2").gone, false);
  const again = [dead[0], { ...dead[1], endedAt: at(20) }];
  const second = modelOf(answer([], sweep(15, 7), { hosts: again }), first, HOW);
  assert.deepEqual([host(second, "host-2").gone, host(second, "host-2").loss.found], [true, 0]);
});

test("where no runner tells, an instance is grey that has said nothing lately, and none can be killed", () => {
  const instances = [
    { name: ONE, at: at(-3), agents: [], running: 0 },
    { name: TWO, at: at(-30), agents: [], running: 0 },
    { name: "host-2-21-cccccc", at: at(-40), agents: [], running: 0 },
  ];
  const model = modelOf(answer([], { instances }, { hosts: null }), null, HOW);
  assert.deepEqual(
    model.hosts.map(({ name, gone, pid }) => [name, gone, pid]),
    [
      ["host-1", false, null],
      ["host-2", true, null],
    ],
  );
});

test("a story is offered where there is what it breaks", () => {
  const offered = (model) => Object.keys(STORIES).filter((name) => STORIES[name].can(model));
  assert.deepEqual(offered(modelOf(answer([]), null, HOW)), ["hangs", "declined", "dies"]);
  assert.deepEqual(offered(modelOf(answer([], {}, { hosts: [dead[0]] }), null, HOW)), ["hangs", "declined"]);
  assert.deepEqual(offered(modelOf(answer([], {}, { services: null, sample: null }), null, HOW)), []);
});

test("a story is not offered where nothing of it can happen", () => {
  const offered = (steps, live = {}) => {
    const model = modelOf(answer([], live, { sample: { steps } }), null, HOW);
    return Object.keys(STORIES).filter((name) => STORIES[name].can(model));
  };
  const [waiting, paid] = [
    { name: "damage", services: [], waits: true },
    { name: "payment", services: ["payment"], waits: false },
  ];
  assert.deepEqual(offered([waiting, paid]), ["hangs", "dies"]);
  assert.deepEqual(offered([waiting]), []);
  assert.deepEqual(offered([{ ...paid, waits: true }], { orders: null }), []);
});

test("a story ends though orders wait that were there before, or that somebody outside has to answer", () => {
  const held = { ...order("held", "parked"), attempt: 2 };
  const before = [held, order("asked", "outside"), order("pause", "later"), order("stuck", "operator")];
  const start = modelOf(answer(before), null, HOW);
  const run = { ...begun("hangs", start, NOW), kept: { service: "payment" } };
  const come = modelOf(answer([...before, order("a", "agent", ["payment"]), order("b", "later")]), start, HOW);
  assert.equal(goneOn(run, come, NOW + 60_000), run);
  const last = { ...run, at: 2 };
  assert.equal(goneOn(last, start, NOW + 60_000), last);
  assert.equal(goneOn(last, come, NOW + 60_000), last);
  const less = modelOf(answer(before, { atLeast: true }), come, HOW);
  assert.equal(goneOn(last, less, NOW + 60_000), last);
  const done = modelOf(answer(before), come, HOW);
  assert.equal(goneOn(last, done, NOW + 60_000).at, 3);
  const waits = modelOf(answer([...before, order("a", "outside"), order("b", "operator")]), come, HOW);
  assert.equal(goneOn(last, waits, NOW + 60_000).at, 3);
  const declined = { ...begun("declined", start, NOW), at: 1, kept: { order: "b" } };
  assert.equal(goneOn(declined, come, NOW + 60_000), declined);
  assert.equal(goneOn(declined, waits, NOW + 60_000).at, 2);
});

test("a story goes on when it is seen what it waits for, and what it said could be read", () => {
  const start = modelOf(answer([]), null, HOW);
  const run = begun("declined", start, NOW);
  run.kept = { order: "a" };
  const failed = modelOf(answer([order("a", "operator"), order("b", "scheduler")]), start, HOW);
  assert.equal(goneOn(run, start, NOW + 60_000), run);
  assert.equal(goneOn(run, failed, NOW + 1_000), run);
  const second = goneOn(run, failed, NOW + 10_000);
  assert.equal(second.at, 1);
  assert.equal(goneOn(second, failed, NOW + 20_000), second);
  const third = goneOn(second, modelOf(answer([order("a", "operator")]), failed, HOW), NOW + 20_000);
  assert.equal(third.at, 2);
  const last = goneOn(third, modelOf(answer([]), failed, HOW), NOW + 30_000);
  assert.deepEqual([last.at, isFinished(last), isFinished(third)], [3, true, false]);
});

test("each story does its part by the hammers, in turn", async () => {
  const done = [];
  const note =
    (name) =>
    async (...given) =>
      void done.push([name, ...given]);
  const names = ["set", "send", "mend", "letGoOn", "kill"];
  const hammers = Object.fromEntries(names.map((name) => [name, note(name)]));
  hammers.sendRefused = async (step) => (done.push(["sendRefused", step]), "refused");
  const held = [
    ...["a", "b", "d"].map((id) => order(id, "agent", ["payment", TWO])),
    order("c", "agent", ["payment", ONE]),
  ];
  const refused = { mode: "reject", match: { orderId: "refused", action: "authorise" } };
  const services = [{ name: "payment", faults: [{ mode: "hang", match: {} }, refused] }];
  const model = modelOf(answer(held, {}, { services }), null, HOW);
  for (const story of Object.keys(STORIES)) {
    const run = begun(story, model, NOW);
    done.push(story);
    for (const scene of STORIES[story].scenes) await scene.does?.(hammers, model, run);
  }
  assert.deepEqual(done, [
    ...["hangs", ["set", "payment", "hang"], ["send", 30], ["mend", "payment"]],
    ...[
      "declined",
      ["send", 5],
      ["sendRefused", "payment"],
      ["mend", "payment", refused.match],
      ["letGoOn", "refused"],
    ],
    ...["dies", ["set", "payment", "slow"], ["send", 30], ["kill", 2], ["mend", "payment"]],
  ]);
});

test("the host is killed that sweeps, if it has enough in its hands", async () => {
  const held = (...hosts) => hosts.map((host, at) => order(`o${at}`, "agent", ["payment", host]));
  const killed = async (orders) => {
    const model = modelOf(answer(orders, sweep(-1, 0)), null, HOW);
    const run = begun("dies", model, NOW);
    let pid;
    await STORIES.dies.scenes[1].does({ kill: async (killed) => (pid = killed) }, model, run);
    return pid;
  };
  assert.equal(await killed(held(ONE, ONE, ONE, TWO, TWO, TWO, TWO)), 1);
  assert.equal(await killed(held(ONE, ONE, TWO, TWO, TWO)), 2);
});

test("the end of a story says who is needed for what it left", () => {
  const model = modelOf(answer([order("a", "operator")]), null, HOW);
  const last = { ...begun("dies", model, NOW), at: 4 };
  assert.equal(sceneOf(last).says(model, last), text("console.scenes.dies-end"));
  assert.ok(
    sceneOf(last)
      .says(model, { ...last, needed: 0 })
      .includes(text("console.scenes.need-person", { count: 1 })),
  );
  const waiting = modelOf(answer([order("a", "operator"), order("b", "outside")]), model, HOW);
  assert.equal(
    sceneOf(last).says(waiting, last),
    `${text("console.scenes.dies-end")} ${text("console.scenes.wait-outside", { count: 1 })}`,
  );
});

test("the story of the host tells what the supervisor found", () => {
  const model = modelOf(answer([], sweep(15, 7), { hosts: dead }), null, HOW);
  const run = { ...begun("dies", model, NOW), at: 3, kept: { name: "host-2" } };
  assert.equal(sceneOf(run).says(model, run), text("console.scenes.dies-found", { found: 7, seconds: 15 }));
});
