/** Messages that nobody could read: put back on their queue, or dropped. */

import { h } from "../../../engine/pages/static/common/dom.js";
import { confirm } from "./dialog.js";
import { live } from "./live.js";
import { at, many, nothing, numbered, text } from "./parts.js";
import { ask, send } from "./session.js";
import { actionsOn } from "./words.js";

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
          messages.map((poison) => message(poison, place)),
        )
      : nothing(
          "There is none",
          "A message that cannot be read is put aside here, with the reason, and blocks nobody.",
        ),
    continuation && h("p", { class: "muted" }, "There are more; these are the oldest."),
  ];
  return live(place, {
    title: "Poison messages",
    shape: "cards",
    heading: ({ messages }) => `${numbered({ count: messages.length })}Poison messages`,
    load: (signal) => ask(`/api/operator/poison?limit=${LISTED}`, { signal }),
    draw,
    every: () => EVERY_SECONDS,
  });
}

const message = (poison, place) =>
  h(
    "li",
    { class: "card message", key: `${poison.queue} ${poison.id}` },
    h(
      "div",
      null,
      h("h2", null, text(poison.reason)),
      h("p", { class: "muted" }, `from ${poison.queue}, `, at(poison.at)),
      h("div", { class: "body" }, h("code", null, text(poison.body))),
    ),
    h(
      "p",
      { class: "buttons" },
      actionsOn("message").map((one) =>
        h("button", { class: one.danger ? "danger" : "", onClick: () => settle(one, poison, place) }, one.title),
      ),
    ),
  );

function settle({ name, title, button, effect, danger }, { queue, id, body }, place) {
  confirm({
    title,
    act: button,
    effect: `${effect} It came from ${queue}, and has ${many(body.length, "character")}.`,
    danger,
    run: async ({ operator, note }) => {
      const path = `/api/operator/poison/${encodeURIComponent(queue)}/${encodeURIComponent(id)}/${name}`;
      await send(path, { operator, note });
      place.say("Done");
    },
    after: place.again,
  });
}
