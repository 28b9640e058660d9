/** What the page can do to the simulated services and to the hosts of the embedded run. */

import { text } from "../../../../engine/pages/static/common/words.js";
import { operator, ask } from "../session.js";

/** What is broken mends itself, also if nobody looks any more. */
const BROKEN_SECONDS = 120;
const AT_ONCE = 8;

/** @returns {import("./scenes.js").Hammers} */
export function hammersOf() {
  const fault = (service, body) => ask(`/simulator/${service}/faults`, { method: "PUT", body });
  const place = async (body) => (await ask("/simulator/sample", { body })).orderId;
  return {
    set: (service, mode) => fault(service, { mode, for: BROKEN_SECONDS }),
    mend: (service, match) => fault(service, { mode: "none", ...(match && { match }) }),
    sendRefused: (step) => place({ refuse: step }),
    letGoOn: (orderId) =>
      ask(`/api/operator/orders/${orderId}/resubmit`, {
        body: { operator: operator() || "console", note: text("console.picture.note") },
      }),
    kill: (pid) => ask(`/local/host?pid=${pid}`, { method: "DELETE" }),
    send: async (count) => {
      let left = count;
      const some = async () => {
        while (left-- > 0) await place({});
      };
      await Promise.all(Array.from({ length: AT_ONCE }, some));
    },
  };
}
