/** What can be done to the parts, on the parts themselves. */

import { h } from "../../../../engine/pages/static/common/dom.js";
import { text } from "../../../../engine/pages/static/common/words.js";

/** @typedef {import("./places.js").Box} Box */
/**
 * What can be done; nothing of it where there is no such hammer.
 * @typedef {object} Hammers
 * @property {(service: string) => void} [breakIt]
 * @property {(service: string) => void} [mend]
 * @property {(pid: number) => void} [kill]
 * @property {(orderId: string) => void} open
 */

/** @param {import("./model.js").Model} model @param {Hammers} hammers */
export function buttons({ places, faults, hosts }, { breakIt, mend, kill }) {
  return [
    breakIt &&
      Object.entries(places.lanes).map(([agent, { service }]) =>
        faults[agent]
          ? button(`on ${agent}`, service, text("console.faults.mend"), agent, () => mend?.(agent))
          : button(`on ${agent}`, service, text("console.picture.break"), agent, () => breakIt(agent)),
      ),
    kill &&
      hosts.map(
        ({ name, pid }) =>
          pid !== null &&
          button(`on ${name}`, places.hosts[name], text("console.picture.kill"), name, () => kill(pid), "danger"),
      ),
  ];
}

const BUTTON = { width: 74, height: 36 };

function button(key, { x, y, width, height }, word, whom, onClick, kind = "") {
  return h(
    "foreignObject",
    { key, x: x + width - BUTTON.width - 6, y: y + height - BUTTON.height - 4, ...BUTTON },
    h("button", { class: `small ${kind}`, onClick }, word, h("span", { class: "for-readers" }, ` ${whom}`)),
  );
}
