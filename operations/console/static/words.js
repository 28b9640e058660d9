/** The language of orders, as the app explains it: asked for once, and kept for as long as the page is open. */

import { LOOK } from "../../../engine/pages/static/common/marks.js";
import { named, text } from "../../../engine/pages/static/common/words.js";
import { ask } from "./session.js";

/** @typedef {import("../../../engine/pages/static/common/marks.js").Look} Look */
/** @typedef {{word: string, mark: Look}} Term */
/** @typedef {Term & {isOver?: boolean, waitsForOperator?: boolean}} OrderTerm */
/** @typedef {Term & {mayBeTriedAgain?: boolean}} StepTerm */
/** @typedef {{word?: string, isFailure?: boolean, changesNothing?: boolean, beginsAttempt?: boolean, endsAttempt?: Term | null}} EventTerm */
/**
 * @typedef {object} List
 * @property {string} title
 * @property {Look} mark
 * @property {string[]} parts the states that the app is asked for
 * @property {string | null} [situation] of the orders that are meant; all of them, unless given
 * @property {boolean} [waitsForOperator]
 * @property {boolean} [isUnderWay] whether its orders go on by themselves
 * @property {boolean} [isCounted] whether the overview counts it
 * @property {boolean} [isOver] whether its orders have come to an end
 */
/** @typedef {{name: string, label: string, kind: string, choices: string[], isRequired: boolean}} Argument */
/**
 * @typedef {object} Action
 * @property {string} name
 * @property {string} title
 * @property {string} button
 * @property {string} effect
 * @property {boolean} danger
 * @property {string} [done] the past participle
 * @property {string} [subject] what it concerns
 * @property {Argument[]} fields what it asks beside the operator's name and a note
 * @property {string[]} lists of which lists all orders can be meant at once
 */
/** @typedef {{orders: Record<string, OrderTerm>, steps: Record<string, StepTerm>, actions: Action[], events?: Record<string, EventTerm>, lists?: Record<string, List>, logLink?: string | null, runbook?: Record<string, string>}} Vocabulary */

/** @type {Vocabulary} */
let vocabulary = { orders: {}, steps: {}, actions: [] };
let isKnown = false;

/** Ask for it unless it is known. @param {AbortSignal} [signal] */
export async function learn(signal) {
  if (!isKnown) know(await ask("/api/operator/vocabulary", { signal }));
}

/** @param {Vocabulary} loaded */
export function know(loaded) {
  vocabulary = loaded;
  isKnown = true;
}

/** How an order looks. @param {{situation: string}} order @returns {{look: Look, word: string}} */
export function orderLook({ situation }) {
  const { mark, word } = vocabulary.orders[situation] ?? { mark: LOOK.plain, word: situation };
  return { look: mark, word };
}

/** Whether nothing will happen to the order any more. @param {{situation: string}} order */
export const isOver = ({ situation }) => Boolean(vocabulary.orders[situation]?.isOver);

/** Whether nothing happens to the order until somebody acts on it. @param {{situation: string}} order */
export const waitsForOperator = ({ situation }) => Boolean(vocabulary.orders[situation]?.waitsForOperator);

/** How a step looks. @param {{state: string, failureCount?: number, threshold?: number}} step @returns {{look: Look, word: string}} */
export function stepLook({ state, failureCount, threshold }) {
  const term = vocabulary.steps[state];
  if (failureCount && term?.mayBeTriedAgain)
    return {
      look: LOOK.retried,
      word: text("console.steps.again", { attempt: failureCount + 1, threshold: threshold ?? "" }),
    };
  return { look: term?.mark ?? LOOK.plain, word: term?.word ?? state };
}

/**
 * The exact state of a step in words, or for what it waits; empty if that says no more than its word.
 * @param {{state: string, exactState?: string, wait?: string | null}} step
 */
export function exactly({ state, exactState = state, wait }) {
  const exact = wait ?? exactState;
  if (exact === state || exact === "Waiting") return "";
  return named("console.exact", exact);
}

/** What an alert is called. @param {string} type */
export const alertName = (type) => named("console.alert", type.replace(/^.*\./, ""));

/** Whether another attempt at a step comes by itself. @param {{state: string}} step */
export const mayComeAgain = ({ state }) => Boolean(vocabulary.steps[state]?.mayBeTriedAgain);

/** What can be done under this name. @param {string} name @returns {Action} */
export const action = (name) =>
  vocabulary.actions.find((known) => known.name === name) ?? {
    name,
    title: name,
    button: name,
    effect: "",
    danger: false,
    fields: [],
    lists: [],
  };

/** Whether an action concerns one step of an order. @param {Action} action */
export const isOfStep = ({ fields }) => fields.some(({ kind }) => kind === "step");

/** What can be done to all orders of a list. @param {string} list */
export const actionsOf = (list) => vocabulary.actions.filter(({ lists }) => lists.includes(list));

/** What can be done to a thing of this kind. @param {string} subject */
export const actionsOn = (subject) => vocabulary.actions.filter((known) => known.subject === subject);

/** What an event of the history is called. @param {string} name */
export const eventName = (name) => event(name).word ?? name;

/** What an event of the history means. @param {string} name @returns {EventTerm} */
export const event = (name) => vocabulary.events?.[name] ?? {};

/** The lists of open orders by name, first those that wait for an operator. */
export const lists = () => vocabulary.lists ?? {};

/** A list; one that the app does not explain is made of itself. @param {string} name @returns {List} */
export const list = (name) => lists()[name] ?? { title: name, mark: LOOK.plain, parts: [name] };

/** Where the log of an order is; nothing if no log is configured. @param {string} orderId */
export const logOf = (orderId) => vocabulary.logLink?.replace("{orderId}", encodeURIComponent(orderId));

/** Where it says what to do; nothing if no address is configured. @param {string} name of an alert, or of a rule */
export const runbook = (name) => vocabulary.runbook?.[name];

/** The name of the list of those that wait for an operator. */
export const waiting = () => Object.keys(lists()).find((name) => lists()[name].waitsForOperator) ?? "";
