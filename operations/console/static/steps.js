/** The steps of an order as a table. */

import { h } from "../../../engine/pages/static/common/dom.js";
import { badge } from "../../../engine/pages/static/common/marks.js";
import { named, rich, text } from "../../../engine/pages/static/common/words.js";
import { at, cell, folded, head, localized } from "./parts.js";
import { exactly, stepLook } from "./words.js";

/** How often it was tried: a round has an idempotency key of its own, and most steps have one round. */
function attemptsOf({ attempts, keyGeneration, failureCount, threshold }) {
  const number = keyGeneration ? text("console.steps.round", { attempts, round: keyGeneration + 1 }) : attempts;
  return failureCount ? `${number}, ${text("console.steps.failed", { failed: failureCount, threshold })}` : number;
}

const later = ({ notBefore }) =>
  notBefore ? h("div", { class: "quiet" }, rich("console.steps.not-before", { time: at(notBefore) })) : null;

/** The steps in words: what the graph shows, for whoever does not see it. */
export const steps = ({ steps: all }) =>
  h(
    "table",
    { class: "rows" },
    head(["step", "state", "attempts", "agent", "after", "result"]),
    h(
      "tbody",
      null,
      all.map((step) => {
        const { look, word } = stepLook(step);
        const exact = exactly(step);
        const detail =
          step.reason ??
          (step.result
            ? Object.entries(step.result)
                .map(([name, value]) => `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`)
                .join(", ")
            : "");
        return h(
          "tr",
          { key: step.name },
          cell(
            "step",
            null,
            h("strong", null, step.name),
            step.title ? h("div", { class: "quiet" }, folded(step.title)) : null,
            step.pivot ? h("div", { class: "quiet" }, text("console.steps.pivot")) : null,
          ),
          cell("state", null, badge(look, word), exact && h("div", { class: "quiet" }, exact)),
          cell("attempts", null, attemptsOf(step)),
          cell("agent", null, named("console.agent", step.agent)),
          cell("after", null, step.after?.join(", ")),
          cell("result", null, localized(detail), later(step)),
        );
      }),
    ),
  );
