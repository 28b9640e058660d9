/** Stories that the picture tells: each breaks something, and says what is seen; it goes on when that is seen. */

import { text } from "../../../../engine/pages/static/common/words.js";
import { DECLINED, DIES, HANGS, first, needPerson, refusable } from "./scenes.js";

/** @typedef {import("./model.js").Model} Model */
/** @typedef {import("./scenes.js").StoryRun} StoryRun */
/** @typedef {{title: string, can: (model: Model) => boolean, scenes: import("./scenes.js").Scene[]}} Story */

/** For how long each caption stays at least: it has to be read. */
const READ_SECONDS = 4;
/** Whether a service can be broken that sample orders need, and the picture shows each. @param {Model} model */
const simulated = (model) =>
  Boolean(model.answer.sample && model.answer.services?.length && model.answer.live.orders && first(model));

/** @type {Record<string, Story>} */
export const STORIES = {
  hangs: { title: text("console.scenes.hangs"), can: simulated, scenes: HANGS },
  declined: {
    title: text("console.scenes.declined"),
    can: (model) => simulated(model) && Boolean(refusable(model)),
    scenes: DECLINED,
  },
  dies: {
    title: text("console.scenes.dies"),
    can: (model) => simulated(model) && model.hosts.filter(({ pid }) => pid !== null).length > 1,
    scenes: DIES,
  },
};

/** @param {string} story @param {Model} model @param {number} now @returns {StoryRun} */
export const begun = (story, model, now) => ({
  story,
  at: 0,
  since: now,
  there: new Set(model.open.keys()),
  over: model.over,
  needed: needPerson(model),
  kept: {},
});

/** The present scene. @param {StoryRun} run */
export const sceneOf = ({ story, at }) => STORIES[story].scenes[at];

/** Go on if what the scene waits for is seen, and could be read. @param {StoryRun} run @param {Model} model @param {number} now @returns {StoryRun} */
export function goneOn(run, model, now) {
  const { until } = sceneOf(run);
  const isRead = now - run.since >= READ_SECONDS * 1000;
  return until && isRead && until(model, run) ? { ...run, at: run.at + 1, since: now } : run;
}

/** Whether there is nothing more to tell. @param {StoryRun} run */
export const isFinished = (run) => !sceneOf(run).until;
