/** The scenes of the stories: what each does, what it says of what is seen, and until what is seen it is told. */

import { many } from "../parts.js";
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

/** The last scene; it says too who is needed for what the story has left. @param {string} text @returns {Scene} */
const end = (text) => ({
  says: (model, run) => {
    const left = needPerson(model) - run.needed;
    const others = ownOf(model, run).filter((order) => isAtRest(order) && order.stands !== "operator").length;
    return [
      text,
      left > 0 && `But ${many(left, "order needs", "orders need")} a person: too many tries failed.`,
      others > 0 &&
        `But ${many(others, "order waits", "orders wait")} for an answer from outside, or for who holds it.`,
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
    says: (model, { kept }) =>
      `The service ${kept.service} hangs: it takes calls and never answers. ${MANY} orders come in. A few are tried; the others wait.`,
    until: (model, run) => triedAgain(model, run) > 0 || isOpen(model),
  },
  {
    says: (model, run) =>
      isOpen(model)
        ? "One order after another got no answer, so the breaker opened: nobody calls, and the orders wait."
        : `The time of the first is up. The supervisor found ${many(triedAgain(model, run), "order")} without an answer, and gave them back for another try.`,
    until: () => true,
  },
  {
    does: (hammers, _, { kept }) => hammers.mend(kept.service),
    says: () => "The service is mended. The next tries work, and all orders go on, a few at first.",
    until: haveEnded,
  },
  end("All is done. Each try carried the same key, so that nothing was done twice."),
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
    says: (_, { kept }) =>
      `${SOME} orders come in. To one, the service ${kept.service} says no for good, as when a card is declined.`,
    until: (model, run) =>
      ownOf(model, run).some(({ orderId, stands }) => orderId === run.kept.order && stands === "operator"),
  },
  {
    says: () =>
      "To try again would not help: the order stops, keeps what is done, and waits for a person. The others go on.",
    until: areAtRest,
  },
  {
    does: async (hammers, model, { kept }) => {
      for (const { name, match } of faultsFor(model, kept.order)) await hammers.mend(name, match);
      await hammers.letGoOn(kept.order);
    },
    says: () => "The reason is gone, as with another card: a person lets the order go on from the step that failed.",
    until: haveEnded,
  },
  end("All is done, and the history of the order says who let it go on, and why."),
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
    says: (model) => `${MANY} orders come in, and ${many(model.hosts.length, "host")} work on them.`,
    until: (model) => victim(model)?.count >= ENOUGH,
  },
  {
    does: async (hammers, model, run) => {
      const { name, pid, count } = victim(model);
      run.kept = { ...run.kept, name, count };
      await hammers.kill(/** @type {number} */ (pid));
    },
    says: (_, { kept }) =>
      `${kept.name} is killed, with ${many(kept.count, "order")} in its hands. It finishes nothing, and says nothing.`,
    until: (model, run) => Boolean(lossOf(model, run)),
  },
  {
    does: (hammers, _, { kept }) => hammers.mend(kept.service),
    says: (_, { kept }) =>
      `Nobody answers for what ${kept.name} had. The locks run out, and so does the time of its orders.`,
    until: (model, run) => lossOf(model, run)?.found > 0 || haveEnded(model, run),
  },
  {
    says: (model, run) => {
      const loss = lossOf(model, run);
      return loss?.found
        ? `The supervisor found ${loss.found}, ${loss.after} s after: they are given back, and tried again.`
        : "The other host had taken over all of it before the supervisor had to.";
    },
    until: haveEnded,
  },
  end("All is done: none is lost, and none was done twice."),
];
