/** The moving picture of the README is drawn of what was recorded. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { moving } from "./moving.js";

const order = (stands, requests = []) => ({
  orderId: "b00-1",
  stands,
  situation: "runs",
  step: "payment",
  attempt: 1,
  threshold: 3,
  requests,
});

const moment = (seconds, orders, caption = "<b>") => ({
  seconds,
  caption,
  answer: {
    live: {
      at: new Date(seconds * 1000).toISOString(),
      submissions: 0,
      groups: [],
      atLeast: false,
      orders,
      breakers: [{ agent: "payment", openUntil: null, triesSince: null }],
      instances: [],
      lastSweep: null,
    },
    services: [],
    sample: null,
    hosts: [],
  },
});

const vocabulary = { orders: { runs: { word: "Runs", mark: "processing" } }, steps: {}, actions: [] };
const drawn = (...moments) => moving({ vocabulary, moments, speed: 2 });

test("a dot moves from place to place at its times, comes from the queue and stays where it ended", () => {
  const requests = [{ agent: "payment", instance: null }];
  const svg = drawn(
    moment(0, []),
    moment(5, [order("scheduler")]),
    moment(10, [order("agent", requests)]),
    moment(15, []),
  );
  assert.match(svg, /--all: 10\.0s/);
  const [rule] = svg.match(/@keyframes d0 \{.*\}/);
  assert.deepEqual(rule.match(/[\d.]+(?=% )/g).slice(0, 4), ["0", "25.00", "26.20", "50.00"]);
  assert.equal(rule.match(/opacity: 0;/g).length, 2);
  assert.match(rule, /color: var\(--processing\).*color: var\(--processed\)/);
});

test("what looks different later is shown at its time, and what never changes always", () => {
  const svg = drawn(moment(0, [], "one"), moment(5, [], "two"));
  assert.match(svg, /class="at[^"]*" style="animation-name:v\d+"><text class="caption"[^>]*>one</);
  assert.match(svg, /@keyframes v\d+ \{ 0\.00% \{ visibility: visible; \} 50\.00% \{ visibility: hidden; \} \}/);
  assert.equal(svg.match(/>Scheduler</g).length, 1);
});

test("it has no script, no text that is markup, and rests for who wants no motion", () => {
  const svg = drawn(moment(0, [order("scheduler")]));
  assert.match(svg, /&#60;b&#62;/);
  assert.doesNotMatch(svg, /<script|on\w+=|foreignObject/);
  assert.match(svg, /prefers-reduced-motion: reduce\) \{ \.at, \.dot \{ animation: none/);
  assert.match(svg, /:root \{[^}]*--ground: light-dark/);
});
