/** Stories that the picture tells: each breaks something, and says what is seen; it goes on when that is seen. */

import { DECLINED, DIES, HANGS, first, needPerson, refusable } from "./scenes.js";

/** @typedef {import("./model.js").Model} Model */
/** @typedef {import("./scenes.js").Told} Told */
/** @typedef {{title: string, can: (model: Model) => boolean, scenes: import("./scenes.js").Scene[]}} Story */

/** For how long each caption stays at least: it has to be read. */
const READ_SECONDS = 4;
/** Whether a service can be broken that sample orders need, and it is told what becomes of each. @param {Model} model */
const simulated = (model) =>
  Boolean(model.answer.sample && model.answer.services?.length && model.answer.live.orders && first(model));

/** @type {Record<string, Story>} */
export const STORIES = {
  hangs: { title: "A service hangs and comes back", can: simulated, scenes: HANGS },
  declined: {
    title: "A card is declined",
    can: (model) => simulated(model) && Boolean(refusable(model)),
    scenes: DECLINED,
  },
  dies: {
    title: "A host dies in the middle",
    can: (model) => simulated(model) && model.hosts.filter(({ pid }) => pid !== null).length > 1,
    scenes: DIES,
  },
};

/** @param {string} story @param {Model} model @param {number} now @returns {Told} */
export const begun = (story, model, now) => ({
  story,
  at: 0,
  since: now,
  there: new Set(model.open.keys()),
  over: model.over,
  needed: needPerson(model),
  kept: {},
});

/** The scene that is told. @param {Told} told */
export const sceneOf = ({ story, at }) => STORIES[story].scenes[at];

/** Go on if what the scene waits for is seen, and could be read. @param {Told} told @param {Model} model @param {number} now @returns {Told} */
export function goneOn(told, model, now) {
  const { until } = sceneOf(told);
  const isRead = now - told.since >= READ_SECONDS * 1000;
  return until && isRead && until(model, told) ? { ...told, at: told.at + 1, since: now } : told;
}

/** Whether there is nothing more to tell. @param {Told} told */
export const isTold = (told) => !sceneOf(told).until;
