/** What stands above the picture: the stories, orders to send, how to break things, and what is told. */

import { h } from "../../../../engine/pages/static/common/dom.js";
import { text } from "../../../../engine/pages/static/common/words.js";
import { isFinished, sceneOf, STORIES } from "./stories.js";

/** @typedef {import("./model.js").Model} Model */
/** @typedef {import("./scenes.js").StoryRun} StoryRun */
/** @typedef {{begin: (story: string) => void, end: () => void, send: (count: number) => void, breakBy: (mode: string) => void}} Commands */

const MODES = /** @type {const} */ (["hang", "down", "busy", "reject", "flaky", "slow"]);
const ORDERS = 10;

/** @param {Model} model @param {{run: StoryRun | null, mode: string}} state @param {Commands} commands */
export const controls = (model, { run, mode }, { begin, send, breakBy }) =>
  model.answer.services?.length > 0 &&
  h(
    "div",
    { class: "buttons", key: "controls" },
    Object.entries(STORIES)
      .filter(([, { can }]) => can(model))
      .map(([name, { title }]) =>
        h(
          "button",
          {
            key: name,
            "aria-pressed": String(run?.story === name),
            disabled: Boolean(run && !isFinished(run)),
            onClick: () => begin(name),
          },
          title,
        ),
      ),
    model.answer.sample && h("button", { onClick: () => send(ORDERS) }, text("console.faults.send", { count: ORDERS })),
    h(
      "label",
      { class: "quiet" },
      text("console.picture.break-means"),
      " ",
      h(
        "select",
        { onChange: (event) => breakBy(event.target.value) },
        MODES.map((value) => h("option", { value, selected: value === mode }, text(`console.picture.mode.${value}`))),
      ),
    ),
  );

/** The story that runs. @param {Model} model @param {StoryRun | null} run @param {Commands} commands */
export const tale = (model, run, { end }) =>
  h(
    "div",
    { class: "tale", key: "tale" },
    h(
      "p",
      { role: "status" },
      run ? sceneOf(run).says(model, run) : text(model.dots ? "console.picture.dots" : "console.picture.numbers"),
    ),
    run &&
      h(
        "p",
        { class: "small" },
        text("console.picture.scene", {
          story: STORIES[run.story].title,
          scene: run.at + 1,
          scenes: STORIES[run.story].scenes.length,
        }),
        " ",
        !isFinished(run) && h("button", { class: "plain small", onClick: end }, text("console.picture.stop")),
      ),
  );
