/** Says on every page that something is broken on purpose. */

import { h, render } from "../../../engine/pages/static/common/dom.js";
import { Poll } from "../../../engine/pages/static/common/poll.js";
import { left } from "../../../engine/pages/static/common/time.js";
import { named, rich, text } from "../../../engine/pages/static/common/words.js";
import { joined } from "./parts.js";
import { ask } from "./session.js";

const EVERY_SECONDS = 10;

/** @typedef {{mode: string, until?: string, match: Record<string, string>}} Fault */
/** @typedef {{name: string, faults: Fault[]}} Service */

/** What is called so by which a fault tells whom it meets. @param {string} name */
export const nameOf = (name) => (name === "orderId" ? text("console.banner.order") : name);

/** What the mode of a fault is called. @param {string} mode */
export const modeName = (mode) => named("console.mode", mode);

/** Whom a fault meets. @param {Fault} fault */
export const metBy = ({ match }) =>
  Object.entries(match)
    .filter(([, value]) => value)
    .map(([name, value]) => `${nameOf(name)} ${value}`)
    .join(", ");

/** Whom a fault meets, and for how long it still does. @param {Fault} fault */
export const meets = (fault) => {
  const [whom, { until }] = [metBy(fault), fault];
  return [
    whom && [" ", text("console.banner.for-whom", { whom })],
    until && [" ", rich("console.banner.for-time", { time: h("span", { live: () => left(until) }) })],
  ];
};

/** @param {HTMLElement} node */
export function watchFaults(node) {
  const poll = new Poll(
    async (signal) => {
      const { services } = await ask("/simulator", { signal });
      draw(node, services);
      return { next: EVERY_SECONDS, changed: services.some(({ faults }) => faults.length) };
    },
    (problem) => {
      if (problem.status === 404) poll.stop(); // real services: nothing is broken on purpose
    },
  );
  poll.now();
  const changed = () => poll.now();
  addEventListener("faults-changed", changed);
  const stop = () => {
    poll.stop();
    removeEventListener("faults-changed", changed);
    render(node);
  };
  return { stop };
}

/** @param {HTMLElement} node @param {Service[]} services */
function draw(node, services) {
  const on = services.flatMap(({ name, faults }) => faults.map((fault) => ({ name, ...fault })));
  render(
    node,
    on.length > 0 &&
      h(
        "p",
        { role: "status" },
        h("strong", null, text("console.banner.title")),
        " ",
        joined(
          "; ",
          ...on.map((fault) => [
            text("console.banner.fault", { service: fault.name, mode: modeName(fault.mode) }),
            meets(fault),
          ]),
        ),
        ". ",
        h("a", { href: "#/faults" }, text("console.faults.title")),
      ),
  );
}
