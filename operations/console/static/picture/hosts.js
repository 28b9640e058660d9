/** Which hosts there are, and which of them are gone: by the runner, which knows, or else by when one was last heard. */

import { text } from "../../../../engine/pages/static/common/words.js";

/** @typedef {{name: string, pid: number, runs: boolean, endedAt: string | null}} RunnerHost */
/** @typedef {{name: string, at: string, agents: string[], running: number}} Instance */
/** @typedef {{at: string, instance: string, recovered: number}} Sweep */
/**
 * What was found of what a host left.
 * @typedef {object} Loss
 * @property {string} endedAt
 * @property {number} found orders that supervisors gave back since
 * @property {number | null} after seconds until the first of them
 * @property {string | null} sweep when the last sweep was that counts
 * @property {boolean} isOver whether nothing is left
 */
/**
 * @typedef {object} Host
 * @property {string} name
 * @property {boolean} gone whether it is grey
 * @property {string} says
 * @property {string} brief the same where there is little room
 * @property {boolean} leads whether its supervisor swept last
 * @property {number | null} pid of a host that can be killed
 * @property {Loss | null} loss
 */

/** For how long an instance that says nothing is shown as there. */
const FRESH_SECONDS = 15;
/** A sweep so soon after a host's end may have begun before it; and whoever killed the host sees it grey. */
const SOON_SECONDS = 3;

/** The machine that an instance is on: its name ends in process id and a random part. @param {string} instance */
export const hostOf = (instance) => instance.replace(/-\d+-\w+$/, "");

const seconds = (from, to) => Math.round((Date.parse(to) - Date.parse(from)) / 1000);

/**
 * @param {{live: any, hosts: RunnerHost[] | null}} answer @param {Record<string, Loss>} losses what was known of each before
 * @param {number} now @returns {Host[]}
 */
export function hostsOf({ live, hosts }, losses, now) {
  return hosts ? hosts.map((host) => ofRunner(host, live, losses[host.name])) : ofReports(live, now);
}

/** @param {RunnerHost} host @param {any} live @param {Loss | undefined} before @returns {Host} */
function ofRunner({ name, pid, runs, endedAt }, live, before) {
  const loss = endedAt ? lossOf(name, endedAt, live, before?.endedAt === endedAt ? before : undefined) : null;
  const gone = !runs || (loss !== null && !loss.isOver);
  return {
    name,
    gone,
    ...stateOf({ gone, runs, again: loss !== null }),
    leads: leads(live, name),
    pid: runs ? pid : null,
    loss,
  };
}

/** How a host is, in words. @param {{gone: boolean, runs: boolean, again: boolean}} host */
function stateOf({ gone, runs, again }) {
  if (gone)
    return {
      says: text(runs ? "console.picture.host-restarting" : "console.picture.host-ended"),
      brief: text("console.picture.host-locks"),
    };
  const says = text(again ? "console.picture.host-runs-again" : "console.picture.host-runs");
  return { says, brief: says };
}

const leads = ({ lastSweep }, name) => lastSweep !== null && hostOf(lastSweep.instance) === name;

/** Whether this process said something last before the host ended. */
const isOfEnded = (instance, endedAt) => Date.parse(instance.at) <= Date.parse(endedAt);

/** @param {string} name @param {string} endedAt @param {any} live @param {Loss | undefined} before @returns {Loss} */
function lossOf(name, endedAt, live, before) {
  const known = before ?? { endedAt, found: 0, after: null, sweep: null, isOver: false };
  if (known.isOver) return known;
  const sweep = live.lastSweep;
  const swept = sweep !== null && Date.parse(sweep.at) > Date.parse(endedAt);
  const isNew = swept && sweep.at !== known.sweep;
  const found = known.found + (isNew ? sweep.recovered : 0);
  const after = known.after ?? (isNew && sweep.recovered ? seconds(endedAt, sweep.at) : null);
  const isLate = swept && Date.parse(sweep.at) - Date.parse(endedAt) >= SOON_SECONDS * 1000;
  const isOver = isLate && allAreRead(live) && lostOrders(live, name, endedAt).length === 0;
  return { endedAt, found, after, sweep: swept ? sweep.at : known.sweep, isOver };
}

/** Whether every open order is told: of many there are only numbers, and of a part of the store perhaps nothing. @param {any} live */
export const allAreRead = ({ orders, atLeast }) => orders !== null && !atLeast;

/** The orders that a host had in hand when it ended. @param {any} live @param {string} name @param {string} endedAt */
function lostOrders(live, name, endedAt) {
  const dead = new Set(
    live.instances
      .filter((instance) => hostOf(instance.name) === name && isOfEnded(instance, endedAt))
      .map((instance) => instance.name),
  );
  return live.orders.filter(({ requests }) => requests.some(({ instance }) => dead.has(instance)));
}

/** @param {any} live @param {number} now @returns {Host[]} */
function ofReports(live, now) {
  /** @type {Map<string, string>} */
  const last = new Map();
  for (const { name, at } of live.instances) if (at > (last.get(hostOf(name)) ?? "")) last.set(hostOf(name), at);
  return [...last].map(([name, at]) => {
    const gone = now - Date.parse(at) > FRESH_SECONDS * 1000;
    const says = text(gone ? "console.picture.host-silent" : "console.picture.host-works");
    return {
      name,
      gone,
      says,
      brief: says,
      leads: leads(live, name),
      pid: null,
      loss: null,
    };
  });
}

/** Whether what works on a request is gone. @param {string | null} instance @param {Host[]} hosts @param {Instance[]} instances */
export function isLost(instance, hosts, instances) {
  const reporter = instances.find((known) => known.name === instance);
  const host = hosts.find((known) => instance !== null && known.name === hostOf(instance));
  return Boolean(reporter && host?.loss && !host.loss.isOver && isOfEnded(reporter, host.loss.endedAt));
}
