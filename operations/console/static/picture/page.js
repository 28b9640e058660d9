/** The pattern as it runs: a picture that follows what happens, and hammers on its parts. */

import { Problem } from "../../../../engine/pages/static/common/api.js";
import { h } from "../../../../engine/pages/static/common/dom.js";
import { now } from "../../../../engine/pages/static/common/time.js";
import { text } from "../../../../engine/pages/static/common/words.js";
import { live } from "../live.js";
import { ask, sinceActing } from "../session.js";
import { controls, tale } from "./controls.js";
import { draw } from "./draw.js";
import { hammersOf } from "./hammers.js";
import { modelOf } from "./model.js";
import { begun, goneOn, sceneOf } from "./stories.js";
import { inWords, legend } from "./text.js";

const EVERY_SECONDS = 10;
/** On the embedded run, which has the page and the app on one machine. */
const EVERY_SECONDS_HERE = 1;
const HOST = "/local/host";

/** @param {import("../main.js").Place} place @returns {import("../main.js").Open} */
export function picturePage(place) {
  /** @type {import("./model.js").Model | null} */
  let model = null;
  /** @type {import("./scenes.js").StoryRun | null} */
  let run = null;
  let [mode, busy] = ["hang", false];
  /** What is not there is asked for once. @type {Set<string>} */
  const missing = new Set();
  /** @type {import("../../../../engine/pages/static/common/api.js").Failure | null} */
  let problem = null;
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const hammers = hammersOf();

  async function optional(path, signal) {
    if (missing.has(path)) return null;
    try {
      return await ask(path, { signal });
    } catch (fault) {
      if (!(fault instanceof Problem) || fault.status !== 404) throw fault;
      missing.add(path);
      return null;
    }
  }

  async function look(signal) {
    const [live, simulated, host] = await Promise.all([
      ask(sinceActing("/api/operator/live"), { signal }),
      optional("/simulator", signal),
      optional(HOST, signal),
    ]);
    return {
      live,
      services: simulated?.services ?? null,
      sample: simulated?.sample ?? null,
      hosts: host?.hosts ?? null,
    };
  }

  /** A host that was killed took the call with it: another answers at once. */
  async function load(signal) {
    try {
      return await look(signal);
    } catch (fault) {
      if (missing.has(HOST) || !(fault instanceof Problem) || fault.status !== 0) throw fault;
      return look(signal);
    }
  }

  const width = () => Math.min(document.querySelector("main")?.clientWidth ?? innerWidth, innerWidth) - margin();
  const margin = () => {
    const style = getComputedStyle(/** @type {Element} */ (document.querySelector("main")));
    return parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
  };

  function follow(answer) {
    model = modelOf(answer, model, { width: width(), still: calm.matches, now: now() });
    if (!run || busy) return;
    const next = goneOn(run, model, Date.now());
    if (next !== run) tell(next);
  }

  /** Tell a scene, and do what belongs to it. */
  async function tell(next) {
    run = next;
    const { does } = sceneOf(next);
    if (!does) return;
    busy = true;
    const shown = /** @type {import("./model.js").Model} */ (model);
    const doing = attempt(
      () => does(hammers, shown, next),
      () => run === next && (run = null),
    );
    page.redraw();
    await doing;
    busy = false;
  }

  /** Do something, and show what comes of it. @param {() => Promise<any>} action @param {() => void} [failed] */
  async function attempt(action, failed) {
    problem = null;
    try {
      await action();
    } catch (fault) {
      problem = /** @type {import("../../../../engine/pages/static/common/api.js").Failure} */ (fault);
      failed?.();
    }
    dispatchEvent(new Event("faults-changed"));
    page.now();
    page.redraw();
  }

  const parts = {
    open: (orderId) => (location.hash = `#/orders/${orderId}`),
    breakIt: (service) => attempt(() => hammers.set(service, mode)),
    mend: (service) => attempt(() => hammers.mend(service)),
    kill: (pid) => attempt(() => hammers.kill(pid)),
  };

  /** @type {import("./controls.js").Commands} */
  const commands = {
    begin: (story) => tell(begun(story, /** @type {import("./model.js").Model} */ (model), Date.now())),
    end: () => {
      run = null;
      attempt(() => Promise.all((model?.answer.services ?? []).map(({ name }) => hammers.mend(name))));
    },
    send: (count) => attempt(() => hammers.send(count)),
    breakBy: (chosen) => (mode = chosen),
  };

  function view(answer) {
    if (model?.answer !== answer) follow(answer);
    const shown = /** @type {import("./model.js").Model} */ (model);
    const { breakIt, mend, kill, ...others } = parts;
    const can = { ...others, ...(answer.services?.length && { breakIt, mend }), ...(answer.hosts && { kill }) };
    return [
      h("h1", null, text("console.live.title")),
      problem &&
        h(
          "div",
          { class: "note wrong", role: "alert" },
          h("p", null, problem.message),
          problem.faults?.map((fault) => h("p", null, fault)),
        ),
      controls(shown, { run, mode }, commands),
      tale(shown, run, commands),
      h("figure", { class: "picture" }, draw(shown, can)),
      legend(shown),
      inWords(shown),
    ];
  }

  const page = live(place, {
    title: text("console.live.title"),
    load,
    draw: view,
    every: ({ hosts }) => (hosts ? EVERY_SECONDS_HERE : EVERY_SECONDS),
    matters: ({ live: { at, submissions, groups, breakers }, services, hosts }) => [
      ...[submissions, groups, breakers, services],
      hosts && at, // here it is asked as often though nothing happens
    ],
  });
  /** What is shown, as the window and its reader want it now. */
  const anew = () => {
    if (model) follow(model.answer);
    page.redraw();
  };
  calm.addEventListener("change", anew);
  addEventListener("resize", anew);
  const stop = () => {
    calm.removeEventListener("change", anew);
    removeEventListener("resize", anew);
    page.stop();
  };
  return { ...page, stop };
}
