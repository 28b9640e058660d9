/** Messages that nobody could read: put back on their queue, or dropped. */

import { h } from "../../../engine/pages/static/common/dom.js";
import { rich, text } from "../../../engine/pages/static/common/words.js";
import { confirm } from "./dialog.js";
import { live } from "./live.js";
import { at, folded, nothing, numbered } from "./parts.js";
import { ask, send } from "./session.js";
import { actionsOn } from "./words.js";

const EVERY_SECONDS = 10;
const LISTED = 100;

/** @param {import("./main.js").Place} place @returns {import("./main.js").Open} */
export function poisonPage(place) {
  const draw = ({ messages, continuation }) => [
    h("h1", null, text("console.poison.title")),
    messages.length
      ? h(
          "ul",
          { class: "messages" },
          messages.map((poison) => message(poison, place)),
        )
      : nothing(text("console.poison.none"), text("console.poison.none-hint")),
    continuation && h("p", { class: "muted" }, text("console.poison.more")),
  ];
  return live(place, {
    title: text("console.poison.title"),
    shape: "cards",
    heading: ({ messages }) => `${numbered({ count: messages.length })}${text("console.poison.title")}`,
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
      h("h2", null, folded(poison.reason)),
      h("p", { class: "muted" }, rich("console.poison.from", { queue: poison.queue, time: at(poison.at) })),
      h("div", { class: "body" }, h("code", null, folded(poison.body))),
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
    effect: `${effect} ${text("console.poison.about", { queue, count: body.length })}`,
    danger,
    run: async ({ operator, note }) => {
      const path = `/api/operator/poison/${encodeURIComponent(queue)}/${encodeURIComponent(id)}/${name}`;
      await send(path, { operator, note });
      place.say(text("console.poison.done"));
    },
    after: place.again,
  });
}
