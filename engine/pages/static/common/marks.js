/** A shape for each state, beside its word and its colour: no state is told by colour alone. */

import { h } from "./dom.js";

/** @typedef {"pending" | "processing" | "processed" | "error" | "again" | "undo" | "skipped" | "waited"} Look */

/** The marks by what they show, for what no word of the app names. @type {Record<"plain" | "runs" | "well" | "wrong" | "retried" | "undone" | "left" | "waits", Look>} */
export const LOOK = {
  plain: "pending",
  runs: "processing",
  well: "processed",
  wrong: "error",
  retried: "again",
  undone: "undo",
  left: "skipped",
  waits: "waited",
};

const round = { cx: 8, cy: 8, r: 6, fill: "none", stroke: "currentColor", "stroke-width": 2 };
const ring = h("circle", round);
const line = (/** @type {string} */ d, more = {}) =>
  h("path", {
    d,
    fill: "none",
    stroke: "currentColor",
    "stroke-width": 2,
    "stroke-linecap": "round",
    "stroke-linejoin": "round",
    ...more,
  });
const inside = (/** @type {string} */ d) => line(d, { stroke: "var(--ground)" });

/** @type {Record<Look, any[]>} */
const SHAPES = {
  pending: [ring],
  processing: [ring, h("path", { d: "M8 2a6 6 0 0 1 0 12z", fill: "currentColor" })],
  processed: [h("circle", { cx: 8, cy: 8, r: 7, fill: "currentColor" }), inside("M5 8.2l2.2 2.2L11.2 6")],
  error: [h("path", { d: "M5 1h6l4 4v6l-4 4H5l-4-4V5z", fill: "currentColor" }), inside("M8 4.2v4.4M8 11.6v.2")],
  again: [line("M13 8a5 5 0 1 1-1.6-3.7"), line("M13.4 1.6v3.2h-3.2")],
  undo: [line("M14 8H3M7 3.6L2.6 8 7 12.4")],
  skipped: [h("circle", { ...round, "stroke-dasharray": "2.7 2" }), line("M5.5 8h5")],
  waited: [line("M5.5 3.5v9M10.5 3.5v9")],
};

/** @param {Look} look @param {Record<string, any>} [props] for a place within another picture */
export const mark = (look, props = {}) =>
  h(
    "svg",
    { class: `mark ${look}`, viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true", ...props },
    SHAPES[look],
  );

/** A state as shape and word. @param {Look} look @param {string} word */
export const badge = (look, word) => h("span", { class: `badge ${look}` }, mark(look), h("span", null, word));
