/** The scenes of the stories: what each does, what it says of what is seen, and until what is seen it is told. */

import { text } from "../../../../engine/pages/static/common/words.js";
import { allAreRead, hostOf } from "./hosts.js";

/** @typedef {import("./model.js").Model} Model */
/**
 * What a story can do.
 * @typedef {object} Hammers
 * @property {(service: string, mode: string) => Promise<any>} set
 * @property {(count: number) => Promise<any>} send sample orders
 * @property {(step: string) => Promise<string>} sendRefused one that a service refuses at this step; returns its id
 * @property {(service: string, match?: Record<string, string>) => Promise<any>} mend
 * @property {(orderId: string) => Promise<any>} letGoOn an operator's action on an order that failed
 * @property {(pid: number) => Promise<any>} kill
 */
/**
 * @typedef {{story: string, at: number, since: number, there: Set<string>, over: number, needed: number, kept: Record<string, any>}} StoryRun
 *   `there` has the orders that were open before: the story is not about them
 */
/** @typedef {{does?: (hammers: Hammers, model: Model, run: StoryRun) => Promise<any>, says: (model: Model, run: StoryRun) => string, until?: (model: Model, run: StoryRun) => boolean}} Scene */

const [SOME, MANY] = [6, 30];
/** So many orders have to be in the hands of a host that is killed. */
const ENOUGH = 3;

/** The open orders that came since the story began. @param {Model} model @param {StoryRun} run @returns {any[]} */
const ownOf = ({ answer: { live } }, { there }) => (live.orders ?? []).filter(({ orderId }) => !there.has(orderId));
/** Whether an order waits for a person, here or outside: nothing of a story comes of it by itself. */
const isAtRest = ({ stands }) => ["operator", "outside", "parked"].includes(stands);
/** Whether no order of the story goes on. @param {Model} model @param {StoryRun} run */
const areAtRest = (model, run) => allAreRead(model.answer.live) && ownOf(model, run).every(isAtRest);
/** @param {Model} model @param {StoryRun} run */
const haveEnded = (model, run) =>
  areAtRest(model, run) &&
  model.answer.live.submissions === 0 &&
  (model.over > run.over || ownOf(model, run).length > 0);
/** The steps of the sample order that a service does; others are answered by somebody outside. @param {Model} model */
const served = ({ answer: { sample } }) => sample.steps.filter(({ services }) => services.length > 0);
/** The step whose refusal makes an order wait for a person. @param {Model} model */
export const refusable = (model) => served(model).find(({ waits }) => waits);
/** The service that is broken: one that sample orders need. @param {Model} model @returns {string | undefined} */
export const first = (model) => (refusable(model) ?? served(model)[0])?.services[0];
/** @param {Model} model @param {StoryRun} run */
const triedAgain = (model, run) => ownOf(model, run).filter(({ attempt }) => attempt > 1).length;
/** @param {Model} model */
const isOpen = ({ breakers }) => Object.values(breakers).some(({ state }) => state === "open");
/** @param {Model} model */
export const needPerson = ({ areas }) => areas.find(({ key }) => key === "operator")?.count ?? 0;

/** The last scene; it says too who is needed for what the story has left. @param {string} words @returns {Scene} */
const end = (words) => ({
  says: (model, run) => {
    const left = needPerson(model) - run.needed;
    const others = ownOf(model, run).filter((order) => isAtRest(order) && order.stands !== "operator").length;
    return [
      words,
      left > 0 && text("console.scenes.need-person", { count: left }),
      others > 0 && text("console.scenes.wait-outside", { count: others }),
    ]
      .filter(Boolean)
      .join(" ");
  },
});

/** @type {Scene[]} */
export const HANGS = [
  {
    does: async (hammers, model, run) => {
      run.kept.service = first(model);
      await hammers.set(run.kept.service, "hang");
      await hammers.send(MANY);
    },
    says: (model, { kept }) => text("console.scenes.hangs-begin", { service: kept.service, count: MANY }),
    until: (model, run) => triedAgain(model, run) > 0 || isOpen(model),
  },
  {
    says: (model, run) =>
      isOpen(model)
        ? text("console.scenes.hangs-open")
        : text("console.scenes.hangs-found", { count: triedAgain(model, run) }),
    until: () => true,
  },
  {
    does: (hammers, _, { kept }) => hammers.mend(kept.service),
    says: () => text("console.scenes.hangs-mended"),
    until: haveEnded,
  },
  end(text("console.scenes.hangs-end")),
];

/** What is broken for one order alone. @param {Model} model @param {string} orderId */
const faultsFor = ({ answer: { services } }, orderId) =>
  services.flatMap(({ name, faults }) =>
    faults.filter(({ match }) => match.orderId === orderId).map(({ match }) => ({ name, match })),
  );

/** @type {Scene[]} */
export const DECLINED = [
  {
    does: async (hammers, model, run) => {
      const step = refusable(model);
      run.kept = { step: step.name, service: step.services[0] };
      await hammers.send(SOME - 1);
      run.kept.order = await hammers.sendRefused(step.name);
    },
    says: (_, { kept }) => text("console.scenes.declined-begin", { service: kept.service, count: SOME }),
    until: (model, run) =>
      ownOf(model, run).some(({ orderId, stands }) => orderId === run.kept.order && stands === "operator"),
  },
  {
    says: () => text("console.scenes.declined-stops"),
    until: areAtRest,
  },
  {
    does: async (hammers, model, { kept }) => {
      for (const { name, match } of faultsFor(model, kept.order)) await hammers.mend(name, match);
      await hammers.letGoOn(kept.order);
    },
    says: () => text("console.scenes.declined-mended"),
    until: haveEnded,
  },
  end(text("console.scenes.declined-end")),
];

/** The host to be killed, with what it has in its hands: the one that sweeps, if it has any, and else the busiest. @param {Model} model */
function victim({ hosts, answer: { live } }) {
  const isHeldBy = (name) => (order) => order.requests.some(({ instance }) => instance && hostOf(instance) === name);
  const busy = hosts
    .filter(({ pid }) => pid !== null)
    .map((host) => ({ ...host, count: (live.orders ?? []).filter(isHeldBy(host.name)).length }))
    .sort((one, other) => other.count - one.count);
  return busy.find(({ leads, count }) => leads && count >= ENOUGH) ?? busy[0];
}
/** @param {Model} model @param {StoryRun} run */
const lossOf = ({ losses }, { kept }) => losses[kept.name];

/** @type {Scene[]} */
export const DIES = [
  {
    does: async (hammers, model, run) => {
      run.kept.service = first(model);
      await hammers.set(run.kept.service, "slow");
      await hammers.send(MANY);
    },
    says: (model) => text("console.scenes.dies-begin", { orders: MANY, count: model.hosts.length }),
    until: (model) => victim(model)?.count >= ENOUGH,
  },
  {
    does: async (hammers, model, run) => {
      const { name, pid, count } = victim(model);
      run.kept = { ...run.kept, name, count };
      await hammers.kill(/** @type {number} */ (pid));
    },
    says: (_, { kept }) => text("console.scenes.dies-killed", { host: kept.name, count: kept.count }),
    until: (model, run) => Boolean(lossOf(model, run)),
  },
  {
    does: (hammers, _, { kept }) => hammers.mend(kept.service),
    says: (_, { kept }) => text("console.scenes.dies-silent", { host: kept.name }),
    until: (model, run) => lossOf(model, run)?.found > 0 || haveEnded(model, run),
  },
  {
    says: (model, run) => {
      const loss = lossOf(model, run);
      return loss?.found
        ? text("console.scenes.dies-found", { found: loss.found, seconds: loss.after ?? "" })
        : text("console.scenes.dies-taken-over");
    },
    until: haveEnded,
  },
  end(text("console.scenes.dies-end")),
];
