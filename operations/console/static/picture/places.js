/** Where the parts of the pattern stand in its picture: beside each other on a desk, below each other on a phone. */

/** @typedef {{x: number, y: number, width: number, height: number}} Box */
/** @typedef {{requests: Box, agent: Box, service: Box}} Lane */
/**
 * @typedef {object} Places
 * @property {boolean} wide
 * @property {number} width
 * @property {number} height
 * @property {Box} queue
 * @property {Box} scheduler
 * @property {Record<string, Lane>} lanes by agent
 * @property {Box} store
 * @property {{later: Box, operator: Box, over: Box}} kept compartments of the store
 * @property {Box} supervisor
 * @property {Record<string, Box>} hosts by name
 */

const WIDE_FROM = 860;
const GAP = 12;
const ARROW = 44;
const LANE = 96;

/** @param {number} x @param {number} y @param {number} width @param {number} height @returns {Box} */
const box = (x, y, width, height) => ({ x, y, width, height });

/** @template Value @param {string[]} names @param {(name: string, at: number) => Value} made @returns {Record<string, Value>} */
const byName = (names, made) => Object.fromEntries(names.map((name, at) => [name, made(name, at)]));

/** So many boxes beside each other. @param {Box} within @param {number} count */
function beside({ x, y, width, height }, count) {
  const one = (width - GAP * (count - 1)) / count;
  return Array.from({ length: count }, (_, at) => box(x + at * (one + GAP), y, one, height));
}

/** @param {string[]} agents @param {string[]} hosts @param {number} width in pixels @returns {Places} */
export const placesOf = (agents, hosts, width) =>
  width >= WIDE_FROM ? across(agents, hosts, width) : down(agents, hosts, width);

/** @param {string[]} agents @param {string[]} hosts @param {number} width @returns {Places} */
function across(agents, hosts, width) {
  const height = Math.max(agents.length, 2) * (LANE + GAP) - GAP;
  const queue = box(0, 0, 172, height);
  const scheduler = box(queue.width + ARROW, 0, 200, height);
  const from = scheduler.x + scheduler.width + ARROW;
  const left = width - from - 2 * ARROW;
  const [requests, agent] = [left * 0.33, left * 0.33];
  const lanes = byName(agents, (_, at) => {
    const y = at * (LANE + GAP);
    const second = from + requests + ARROW * 0.6;
    const third = second + agent + ARROW * 1.4;
    return {
      requests: box(from, y, requests, LANE),
      agent: box(second, y, agent, LANE),
      service: box(third, y, width - third, LANE),
    };
  });
  const store = box(0, height + ARROW, width, 120);
  const kept = beside(box(scheduler.x, store.y + 8, width - scheduler.x - 8, store.height - 16), 3);
  const lower = store.y + store.height + ARROW;
  const rest = box(from, lower, width - from, 92);
  return {
    wide: true,
    width,
    height: lower + 92,
    queue,
    scheduler,
    lanes,
    store,
    kept: { later: kept[0], operator: kept[1], over: kept[2] },
    supervisor: box(0, lower, scheduler.x + scheduler.width, 92),
    hosts: placed(hosts, beside(rest, Math.max(hosts.length, 1))),
  };
}

/** @param {string[]} agents @param {string[]} hosts @param {number} width @returns {Places} */
function down(agents, hosts, width) {
  const arrow = 24;
  const queue = box(0, 0, width, 60);
  const scheduler = box(0, 60 + arrow, width, 92);
  const from = scheduler.y + scheduler.height + arrow;
  const lanes = byName(agents, (_, at) => {
    const [requests, agent, service] = [0.27, 0.31, 0.42].map((share) => share * (width - 2 * GAP));
    const y = from + at * (LANE + GAP);
    return {
      requests: box(0, y, requests, LANE),
      agent: box(requests + GAP, y, agent, LANE),
      service: box(width - service, y, service, LANE),
    };
  });
  const store = box(0, from + agents.length * (LANE + GAP) - GAP + arrow, width, 132);
  const kept = beside(box(6, store.y + 34, width - 12, store.height - 40), 3);
  const supervisor = box(0, store.y + store.height + arrow, width, 76);
  const lower = supervisor.y + supervisor.height + GAP;
  const rows = Math.ceil(hosts.length / 2);
  const pairs = Array.from({ length: rows }, (_, row) => beside(box(0, lower + row * (92 + GAP), width, 92), 2)).flat();
  return {
    wide: false,
    width,
    height: lower + Math.max(rows * (92 + GAP) - GAP, 0),
    queue,
    scheduler,
    lanes,
    store,
    kept: { later: kept[0], operator: kept[1], over: kept[2] },
    supervisor,
    hosts: placed(hosts, pairs),
  };
}

/** @param {string[]} names @param {Box[]} boxes */
const placed = (names, boxes) => byName(names, (_, at) => boxes[at]);
