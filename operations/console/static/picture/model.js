/** The picture of one moment: what an answer, and what was known before it, make of the parts, dots and numbers. */

import { LOOK } from "../../../../engine/pages/static/common/marks.js";
import { text } from "../../../../engine/pages/static/common/words.js";
import { orderLook } from "../words.js";
import { hostsOf, isLost } from "./hosts.js";
import { placesOf } from "./places.js";

/** @typedef {import("./places.js").Box} Box */
/** @typedef {import("./places.js").Places} Places */
/** @typedef {import("./hosts.js").Host} Host */
/** @typedef {{x: number, y: number}} Point */
/**
 * @typedef {Point & {key: string, orderId: string, area: string, look: string, lost: boolean, says: string, from: Point}} Dot
 *   `from` is where a new one comes from
 */
/** @typedef {{key: string, box: Box, count: number, more: boolean, share: number}} Area `share` of the longest bar */
/** @typedef {"closed" | "open" | "tries"} Breaker */
/**
 * @typedef {object} Model
 * @property {Places} places
 * @property {Area[]} areas where orders stand
 * @property {Dot[] | null} dots nothing where only numbers are shown
 * @property {Record<string, {state: Breaker, until: string | null}>} breakers by agent
 * @property {Record<string, {mode: string, until?: string} | null>} faults of the simulated services, by agent
 * @property {Host[]} hosts
 * @property {Record<string, import("./hosts.js").Loss>} losses by host
 * @property {number} over how many orders have come to their end since the page was opened
 * @property {[string, string][]} ended the last of them: id, and the situation in which each was seen last
 * @property {Map<string, string>} open by id, the situation of each open order
 * @property {any} answer
 */
/** @typedef {{live: any, services: any[] | null, sample: any, hosts: import("./hosts.js").RunnerHost[] | null}} Answer */

const HEAD = 34;
const PITCH = 14;
export const DOT = 10;
const MARGIN = 10;
const FOOT = 22;
/** So many orders that have ended are shown. */
const MOST_ENDED = 40;

/** The area of an order, or of what an agent was asked for it. */
export const AREAS = {
  scheduler: "scheduler",
  later: "later",
  outside: "later",
  parked: "later",
  operator: "operator",
};

/**
 * @param {Answer} answer @param {Model | null} before @param {{width: number, still: boolean, now: number}} how
 * @returns {Model}
 */
export function modelOf(answer, before, { width, still, now }) {
  const { live, services } = answer;
  const agents = live.breakers.map(({ agent }) => agent);
  const hosts = hostsOf(answer, before?.losses ?? {}, now);
  const places = placesOf(
    agents,
    hosts.map(({ name }) => name),
    width,
  );
  const was = before?.open ?? new Map();
  const open = openOf(live, was);
  const gone = [...was].filter(([id]) => live.orders && !open.has(id));
  const ended = [...(before?.ended ?? []), ...gone].filter(([id]) => !open.has(id)).slice(-MOST_ENDED);
  const areas = new Map(boxes(places));
  const tokens =
    live.orders &&
    [...live.orders.flatMap((order) => tokensOf(order, hosts, live)), ...ended.map(tokenOf)].map((token) => ({
      ...token,
      area: within(areas, token.area),
    }));
  return {
    places,
    areas: areasOf(live, areas, tokens),
    dots: still || !tokens ? null : dotsOf(tokens, areas, places.queue, before),
    breakers: Object.fromEntries(live.breakers.map((circuit) => [circuit.agent, breaker(circuit, now)])),
    faults: Object.fromEntries(agents.map((name) => [name, faultOf(name, services)])),
    hosts,
    losses: Object.fromEntries(hosts.flatMap(({ name, loss }) => (loss ? [[name, loss]] : []))),
    over: (before?.over ?? 0) + gone.length,
    ended,
    open,
    answer,
  };
}

/** The open orders; where not all were read, those that were open before may still be. @param {any} live @param {Map<string, string>} was */
const openOf = ({ orders, atLeast }, was) =>
  new Map([...(atLeast ? was : []), ...(orders ?? []).map(({ orderId, situation }) => [orderId, situation])]);

/** @returns {{state: Breaker, until: string | null}} */
function breaker({ openUntil, triesSince }, now) {
  if (openUntil && Date.parse(openUntil) > now) return { state: "open", until: openUntil };
  return { state: triesSince ? "tries" : "closed", until: null };
}

/** What is broken at a service for everybody. */
function faultOf(name, services) {
  const service = services?.find((candidate) => candidate.name === name);
  return service?.faults.find(({ match }) => !Object.values(match).some(Boolean)) ?? null;
}

/** What is drawn of an order: one dot, or one with each agent that works on it. */
function tokensOf({ orderId, stands, situation, step, attempt, threshold, requests }, hosts, { instances }) {
  const { look, word } = orderLook({ situation });
  const at = attempt > 1 ? text("console.rows.attempt", { step, attempt, threshold }) : step;
  const says = `${orderId}: ${at ? `${word}, ${at}` : word}`;
  const token = (area, place, lost = false) => ({
    key: place ? `${orderId} ${place}` : orderId,
    orderId,
    area,
    look,
    lost,
    says,
  });
  if (!requests.length) return [token(AREAS[stands], 0)];
  return requests.map(({ agent, instance }, place) =>
    token(`${instance ? "agent" : "requests"} ${agent}`, place, isLost(instance, hosts, instances)),
  );
}

const tokenOf = ([orderId, situation]) => ({
  key: orderId,
  orderId,
  area: "over",
  look: orderLook({ situation }).look === LOOK.undone ? LOOK.undone : LOOK.well,
  lost: false,
  says: `${orderId}: ${text("console.picture.dot-over")}`,
});

/** The areas by name. @param {Places} places @returns {[string, Box][]} */
const boxes = ({ scheduler, lanes, kept }) => [
  ["scheduler", scheduler],
  ...Object.entries(lanes).flatMap(([agent, lane]) => [
    /** @type {[string, Box]} */ ([`requests ${agent}`, lane.requests]),
    /** @type {[string, Box]} */ ([`agent ${agent}`, lane.agent]),
  ]),
  ["later", kept.later],
  ["operator", kept.operator],
  ["over", kept.over],
];

/** An area that there is: who was asked may be an agent that this app does not have. @param {Map<string, Box>} areas */
const within = (areas, /** @type {string} */ area) => (areas.has(area) ? area : "later");

/** Where orders stand, and how many: of the dots, or of more orders than can be drawn what the app has counted. */
function areasOf(live, areas, tokens) {
  const counts = new Map();
  const count = (area, by) => counts.set(area, (counts.get(area) ?? 0) + by);
  if (tokens) for (const { area } of tokens) count(area, 1);
  else
    for (const { stands, agent, count: by } of live.groups)
      count(within(areas, agent ? `requests ${agent}` : AREAS[stands]), by);
  const most = Math.max(1, ...counts.values());
  return [...areas].map(([key, box]) => {
    const found = counts.get(key) ?? 0;
    return { key, box, count: found, more: live.atLeast, share: found / most };
  });
}

/** @param {any[]} tokens @param {Map<string, Box>} areas @param {Box} queue @param {Model | null} before @returns {Dot[]} */
function dotsOf(tokens, areas, queue, before) {
  const taken = new Map();
  const was = new Map((before?.dots ?? []).map((dot) => [dot.key, dot]));
  const first = new Map((before?.dots ?? []).map((dot) => [dot.orderId, dot]));
  return tokens.map((token) => {
    const slot = taken.get(token.area) ?? 0;
    taken.set(token.area, slot + 1);
    const at = pointIn(/** @type {Box} */ (areas.get(token.area)), slot);
    const from = was.get(token.key) ?? first.get(token.orderId) ?? middleOf(queue);
    return { ...token, ...at, from: { x: from.x, y: from.y } };
  });
}

/** The place of a dot; those for which there is no room share the last. @param {Box} box @param {number} slot */
export function pointIn({ x, y, width, height }, slot) {
  const columns = Math.max(1, Math.floor((width - 2 * MARGIN + PITCH - DOT) / PITCH));
  const rows = Math.max(1, Math.floor((height - HEAD - FOOT + PITCH - DOT) / PITCH));
  const at = Math.min(slot, columns * rows - 1);
  return { x: x + MARGIN + (at % columns) * PITCH, y: y + HEAD + Math.floor(at / columns) * PITCH };
}

/** @param {Box} box */
const middleOf = ({ x, y, width, height }) => ({ x: x + (width - DOT) / 2, y: y + (height - DOT) / 2 });
