/** Breaks the simulated services on purpose, and a host of the embedded run: to watch the system heal. */

import { Problem } from "../../../engine/pages/static/common/api.js";
import { h } from "../../../engine/pages/static/common/dom.js";
import { badge, LOOK } from "../../../engine/pages/static/common/marks.js";
import { text } from "../../../engine/pages/static/common/words.js";
import { meets, metBy, modeName, nameOf } from "./banner.js";
import { live } from "./live.js";
import { nothing } from "./parts.js";
import { ask } from "./session.js";

const EVERY_SECONDS = 5;
const ORDERS = 100;
const AT_ONCE = 8;
const HOST = "/local/host";
const MODES = /** @type {const} */ ([
  "none",
  "slow",
  "flaky",
  "down",
  "hang",
  "late",
  "reject",
  "busy",
  "unauthorized",
  "accept",
  "remember",
  "forget",
]);
/** For how many seconds a service is broken, and what that is called. */
const TIMES = {
  30: text("console.faults.for-30-seconds"),
  60: text("console.faults.for-a-minute"),
  300: text("console.faults.for-5-minutes"),
  0: text("console.faults.until-mended"),
};

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
    place.say(`${service}: ${modeName(mode)}`);
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
        sending = text("console.faults.sending", { sent: ++sent, all: ORDERS });
        page.redraw();
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, one));
    place.say(text("console.faults.sent", { count: ORDERS }));
  }

  const draw = ({ services, marks, sample, host }) => [
    h("h1", null, text("console.faults.title")),
    h("p", { class: "muted" }, text("console.faults.hint")),
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
          h("h2", { id: "services" }, text("console.faults.services")),
          terms(marks),
          h("ul", { class: "cards" }, services.map(service)),
        )
      : nothing(text("console.faults.none"), text("console.faults.none-hint")),
    sample &&
      h(
        "p",
        { class: "buttons" },
        h("button", { class: "main", onClick: () => attempt(send) }, text("console.faults.send", { count: ORDERS })),
        h("span", { role: "status" }, sending),
      ),
    host &&
      h(
        "section",
        { "aria-labelledby": "host" },
        h("h2", { id: "host" }, text("console.faults.host")),
        h("p", { class: "muted" }, text("console.faults.host-hint", { process: String(host) })),
        h(
          "button",
          { class: "danger", onClick: () => attempt(() => ask(HOST, { method: "DELETE" })) },
          text("console.faults.kill"),
        ),
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
        text("console.faults.break-it"),
        " ",
        h(
          "select",
          { onChange: (event) => (seconds = Number(event.target.value)) },
          Object.entries(TIMES).map(([value, name]) =>
            h("option", { value, selected: Number(value) === seconds }, name),
          ),
        ),
      ),
      [...marks, "orderId"].map((name) =>
        h(
          "label",
          null,
          text("console.faults.only-for", { name: nameOf(name) }),
          " ",
          h("input", { placeholder: text("console.faults.all"), onInput: typed(name) }),
        ),
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
                badge(LOOK.wrong, modeName(fault.mode)),
                meets(fault),
                " ",
                h(
                  "button",
                  { class: "plain", onClick: () => set(name, "none", fault.match) },
                  text("console.faults.mend"),
                  h("span", { class: "for-readers" }, ` ${name}: ${modeName(fault.mode)}`),
                ),
              ),
            ),
          )
        : h("p", null, badge(LOOK.well, text("console.faults.works"))),
      h(
        "div",
        { class: "modes", role: "group", "aria-label": text("console.faults.of", { service: name }) },
        MODES.map((mode) =>
          h(
            "button",
            {
              key: mode,
              title: text(`console.faults.does.${mode}`),
              "aria-pressed": String(isSet(faults, mode)),
              onClick: () => set(name, mode),
            },
            modeName(mode),
          ),
        ),
      ),
    );

  const page = live(place, { title: text("console.faults.title"), load, draw, every: () => EVERY_SECONDS });
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
