/** Says on every page that something is broken on purpose. */

import { h, render } from "../../../engine/pages/static/common/dom.js";
import { Poll } from "../../../engine/pages/static/common/poll.js";
import { countdown } from "../../../engine/pages/static/common/time.js";
import { ask } from "./session.js";

const EVERY_SECONDS = 10;

/** @typedef {{mode: string, until?: string, match: Record<string, string>}} Fault */
/** @typedef {{name: string, faults: Fault[]}} Service */

/** What is called so by which a fault tells whom it meets. @param {string} name */
export const nameOf = (name) => (name === "orderId" ? "order" : name);

/** Whom a fault meets. @param {Fault} fault */
export const metBy = ({ match }) =>
  Object.entries(match)
    .filter(([, value]) => value)
    .map(([name, value]) => `${nameOf(name)} ${value}`)
    .join(", ");

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
        h("strong", null, "Broken on purpose: "),
        on.map(({ until, ...fault }, place) => [
          place ? "; " : "",
          `${fault.name} is set to ${fault.mode}`,
          metBy(fault) && ` for ${metBy(fault)}`,
          until && [" for ", h("span", { live: () => countdown(until).replace("in ", "") })],
        ]),
        ". ",
        h("a", { href: "#/faults" }, "Faults"),
      ),
  );
}
