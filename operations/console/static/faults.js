/** Breaks the simulated services on purpose, and a host of the embedded run: to watch the system heal. */

import { Problem } from "../../../engine/pages/static/common/api.js";
import { h } from "../../../engine/pages/static/common/dom.js";
import { badge, LOOK } from "../../../engine/pages/static/common/marks.js";
import { countdown } from "../../../engine/pages/static/common/time.js";
import { metBy, nameOf } from "./banner.js";
import { live } from "./live.js";
import { nothing } from "./parts.js";
import { ask } from "./session.js";

const EVERY_SECONDS = 5;
const ORDERS = 100;
const AT_ONCE = 8;
const HOST = "/local/host";
const MODES = {
  none: "It works",
  slow: "It answers after a second",
  flaky: "Half of the calls fail",
  down: "It answers 503",
  hang: "It does not answer, and does nothing",
  late: "It does not answer in time, but does it",
  reject: "It refuses for good",
  busy: "It answers 429, and asks for a pause of 5 seconds",
  unauthorized: "It answers 401 to the first call of each step, then works",
  accept: "It accepts, and does it when it is asked again",
  remember: "It refuses, and repeats that for the same key",
  forget: "It forgets after ten seconds what it did",
};
const TIMES = { 30: "for 30 s", 60: "for a minute", 300: "for 5 minutes", 0: "until it is mended" };

/** @param {import("./main.js").Place} place @returns {import("./main.js").Open} */
export function faultsPage(place) {
  let [seconds, match, sending] = [60, /** @type {Record<string, string>} */ ({}), ""];
  /** @type {import("../../../engine/pages/static/common/api.js").Failure | null} */
  let problem = null;

  async function load(signal) {
    const [simulated, host] = await Promise.all([optional("/simulator", signal), optional(HOST, signal)]);
    return { ...simulated, host: host?.host };
  }

  async function set(service, mode, target = match) {
    const given = Object.fromEntries(Object.entries(target).filter(([, value]) => value));
    const body = { mode, match: given, ...(mode !== "none" && seconds > 0 && { for: seconds }) };
    await attempt(() => ask(`/simulator/${service}/faults`, { method: "PUT", body }));
    place.say(`${service}: ${mode}`);
    dispatchEvent(new Event("faults-changed"));
  }

  async function attempt(action) {
    problem = null;
    try {
      await action();
    } catch (fault) {
      problem = /** @type {import("../../../engine/pages/static/common/api.js").Failure} */ (fault);
    }
    page.now();
    page.redraw();
  }

  async function send() {
    let [left, sent] = [ORDERS, 0];
    const one = async () => {
      while (left-- > 0) {
        await ask("/simulator/sample", { body: {} });
        sending = `${++sent} of ${ORDERS} sent`;
        page.redraw();
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, one));
    place.say(`${ORDERS} orders sent`);
  }

  const draw = ({ services, marks, sample, host }) => [
    h("h1", null, "Faults"),
    h("p", { class: "muted" }, "Break something, send orders, and watch the system heal."),
    problem &&
      h(
        "div",
        { class: "note wrong", role: "alert" },
        h("p", null, problem.message),
        problem.faults?.map((fault) => h("p", null, fault)),
      ),
    services?.length
      ? h(
          "section",
          { "aria-labelledby": "services" },
          h("h2", { id: "services" }, "Services"),
          terms(marks),
          h("ul", { class: "cards" }, services.map(service)),
        )
      : nothing("The services here are real", "Nothing can be broken on purpose."),
    sample &&
      h(
        "p",
        { class: "buttons" },
        h("button", { class: "main", onClick: () => attempt(send) }, `Send ${ORDERS} orders`),
        h("span", { role: "status" }, sending),
      ),
    host &&
      h(
        "section",
        { "aria-labelledby": "host" },
        h("h2", { id: "host" }, "Host"),
        h(
          "p",
          { class: "muted" },
          `Process ${host} answers. Killed, it finishes nothing; another starts, and takes over what it left when the locks have run out.`,
        ),
        h("button", { class: "danger", onClick: () => attempt(() => ask(HOST, { method: "DELETE" })) }, "Kill a host"),
      ),
  ];

  function terms(marks) {
    const typed = (name) => (event) => (match = { ...match, [name]: event.target.value.trim() });
    return h(
      "div",
      { class: "filter" },
      h(
        "label",
        null,
        "Break it ",
        h(
          "select",
          { onChange: (event) => (seconds = Number(event.target.value)) },
          Object.entries(TIMES).map(([value, name]) =>
            h("option", { value, selected: Number(value) === seconds }, name),
          ),
        ),
      ),
      [...marks, "orderId"].map((name) =>
        h("label", null, `only for ${nameOf(name)} `, h("input", { placeholder: "all", onInput: typed(name) })),
      ),
    );
  }

  const service = ({ name, faults }) =>
    h(
      "li",
      { class: "card service", key: name },
      h("h3", null, name),
      faults.length
        ? h(
            "ul",
            null,
            faults.map((fault) =>
              h(
                "li",
                null,
                badge(LOOK.wrong, fault.mode),
                metBy(fault) && ` for ${metBy(fault)}`,
                fault.until && [" for ", h("span", { live: () => countdown(fault.until).replace("in ", "") })],
                " ",
                h(
                  "button",
                  { class: "plain", onClick: () => set(name, "none", fault.match) },
                  "Mend",
                  h("span", { class: "for-readers" }, ` ${name}: ${fault.mode}`),
                ),
              ),
            ),
          )
        : h("p", null, badge(LOOK.well, "works")),
      h(
        "div",
        { class: "modes", role: "group", "aria-label": `Fault of ${name}` },
        Object.entries(MODES).map(([mode, title]) =>
          h(
            "button",
            { key: mode, title, "aria-pressed": String(isSet(faults, mode)), onClick: () => set(name, mode) },
            mode[0].toUpperCase() + mode.slice(1),
          ),
        ),
      ),
    );

  const page = live(place, { title: "Faults", load, draw, every: () => EVERY_SECONDS });
  return page;
}

/** Whether a service is broken so for everybody; one that works is set to none. */
const isSet = (faults, mode) =>
  mode === "none" ? !faults.length : faults.some((fault) => fault.mode === mode && !metBy(fault));

/** What may not be there: real services are not broken, and only the embedded host can be killed. */
async function optional(path, signal) {
  try {
    return await ask(path, { signal });
  } catch (problem) {
    if (problem instanceof Problem && problem.status === 404) return null;
    throw problem;
  }
}
