/** Messages that nobody could read: put back on their queue, or dropped. */

import { h } from "../common/dom.js";
import { confirm } from "./dialog.js";
import { live } from "./live.js";
import { at, many, nothing, text } from "./parts.js";
import { ask } from "./session.js";

const EVERY_SECONDS = 10;
const LISTED = 100;

/** @param {import("./main.js").Place} place @returns {import("./main.js").Open} */
export function poisonPage(place) {
  const draw = ({ messages, continuation }) => [
    h("h1", null, "Poison messages"),
    messages.length
      ? h(
          "ul",
          { class: "messages" },
          messages.map((each) => message(each, place)),
        )
      : nothing(
          "There is none",
          "A message that cannot be read is put aside here, with the reason, and blocks nobody.",
        ),
    continuation && h("p", { class: "muted" }, "There are more; these are the oldest."),
  ];
  return live(place, {
    title: "Poison messages",
    load: (signal) => ask(`/api/operator/poison?limit=${LISTED}`, { signal }),
    draw,
    every: () => EVERY_SECONDS,
  });
}

const message = (each, place) =>
  h(
    "li",
    { class: "card message", key: `${each.queue} ${each.id}` },
    h(
      "div",
      null,
      h("h2", null, text(each.reason)),
      h("p", { class: "muted" }, `from ${each.queue}, `, at(each.at)),
      h("div", { class: "body" }, h("code", null, text(each.body))),
    ),
    h(
      "p",
      { class: "buttons" },
      h("button", { onClick: () => settle("redrive", each, place) }, "Put back"),
      h("button", { class: "danger", onClick: () => settle("drop", each, place) }, "Drop"),
    ),
  );

const EFFECTS = {
  redrive: (queue) => `The message goes onto ${queue} again, as it was. If nothing was mended, it comes back here.`,
  drop: (queue, body) =>
    `The message is removed for good; ${many(body.length, "character")} of it are lost, and nobody handles it.`,
};

function settle(action, { queue, id, body }, place) {
  confirm({
    title: action === "redrive" ? "Put the message back" : "Drop the message",
    act: action === "redrive" ? "Put it back" : "Drop it for good",
    effect: EFFECTS[action](queue, body),
    danger: action === "drop",
    run: async ({ operator, note }) => {
      await ask(`/api/operator/poison/${encodeURIComponent(queue)}/${encodeURIComponent(id)}/${action}`, {
        body: { operator, note },
      });
      place.say("Done");
    },
    after: place.again,
  });
}
