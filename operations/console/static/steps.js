/** The steps of an order as a table. */

import { h } from "../../../engine/pages/static/common/dom.js";
import { badge } from "../../../engine/pages/static/common/marks.js";
import { at, head, text, localized } from "./parts.js";
import { exactly, stepLook } from "./words.js";

/** How often it was tried: a round has an idempotency key of its own, and most steps have one round. */
const attemptsOf = ({ attempts, keyGeneration, failureCount, threshold }) =>
  `${attempts}${keyGeneration ? ` (now round ${keyGeneration + 1})` : ""}${failureCount ? `, ${failureCount} of ${threshold} in vain` : ""}`;

const later = ({ notBefore }) => (notBefore ? h("div", { class: "quiet" }, "not before ", at(notBefore)) : null);

/** The steps in words: what the graph shows, for whoever does not see it. */
export const steps = ({ steps: all }) =>
  h(
    "table",
    { class: "rows" },
    head(["Step", "State", "Attempts", "Agent", "After", "Reason or result"]),
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
                .map(([name, value]) => `${name} ${value}`)
                .join(", ")
            : "");
        return h(
          "tr",
          { key: step.name },
          h(
            "td",
            { "data-name": "Step" },
            h("strong", null, step.name),
            step.title ? h("div", { class: "quiet" }, text(step.title)) : null,
            step.pivot ? h("div", { class: "quiet" }, "point of no return") : null,
          ),
          h("td", { "data-name": "State" }, badge(look, word), exact && h("div", { class: "quiet" }, exact)),
          h("td", { "data-name": "Attempts" }, attemptsOf(step)),
          h("td", { "data-name": "Agent" }, step.agent),
          h("td", { "data-name": "After" }, step.after?.join(", ")),
          h("td", { "data-name": "Reason or result" }, localized(detail), later(step)),
        );
      }),
    ),
  );
