/** What stands above the picture: the stories, orders to send, how to break things, and what is told. */

import { h } from "../../../../engine/pages/static/common/dom.js";
import { isFinished, sceneOf, STORIES } from "./stories.js";

/** @typedef {import("./model.js").Model} Model */
/** @typedef {import("./scenes.js").StoryRun} StoryRun */
/** @typedef {{begin: (story: string) => void, end: () => void, send: (count: number) => void, breakBy: (mode: string) => void}} Commands */

const MODES = {
  hang: "it hangs",
  down: "it is down",
  busy: "it asks for a pause",
  reject: "it refuses",
  flaky: "half of its calls fail",
  slow: "it is slow",
};
const ORDERS = 10;
const DOTS = "Each dot is an order; it moves when the order does.";
const NUMBERS = "Each number says how many orders are there.";

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
    model.answer.sample && h("button", { onClick: () => send(ORDERS) }, `Send ${ORDERS} orders`),
    h(
      "label",
      { class: "quiet" },
      "Break means ",
      h(
        "select",
        { onChange: (event) => breakBy(event.target.value) },
        Object.entries(MODES).map(([value, name]) => h("option", { value, selected: value === mode }, name)),
      ),
    ),
  );

/** The story that runs. @param {Model} model @param {StoryRun | null} run @param {Commands} commands */
export const tale = (model, run, { end }) =>
  h(
    "div",
    { class: "tale", key: "tale" },
    h("p", { role: "status" }, run ? sceneOf(run).says(model, run) : model.dots ? DOTS : NUMBERS),
    run &&
      h(
        "p",
        { class: "small" },
        `${STORIES[run.story].title}: ${run.at + 1} of ${STORIES[run.story].scenes.length} `,
        !isFinished(run) && h("button", { class: "plain small", onClick: end }, "Stop and mend"),
      ),
  );
