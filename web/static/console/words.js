/** The language of orders, as the app explains it: asked for once, and kept for as long as the page is open. */

import { ask } from "./session.js";

/** @typedef {import("../common/marks.js").Look} Look */
/** @typedef {{word: string, mark: Look, isOver?: boolean, mayBeTriedAgain?: boolean}} Term */
/**
 * @typedef {object} Action
 * @property {string} name
 * @property {string} title
 * @property {string} button
 * @property {string} effect
 * @property {boolean} danger
 * @property {boolean} ofStep whether it concerns one of the steps that failed
 * @property {string[]} lists of which lists all orders can be meant at once
 */
/** @typedef {{orders: Record<string, Term>, steps: Record<string, Term>, actions: Action[], lists?: Record<string, Look>}} Vocabulary */

/** @type {Vocabulary} */
let vocabulary = { orders: {}, steps: {}, actions: [] };
let isKnown = false;

/** Ask for it unless it is known. @param {AbortSignal} [signal] */
export async function learn(signal) {
  if (!isKnown) know(await ask("/api/operator/vocabulary", { signal }));
}

/** @param {Vocabulary} said */
export function know(said) {
  vocabulary = said;
  isKnown = true;
}

/** How an order looks. @param {{situation: string}} order @returns {{look: Look, word: string}} */
export function orderLook({ situation }) {
  const { mark, word } = vocabulary.orders[situation] ?? { mark: /** @type {Look} */ ("pending"), word: situation };
  return { look: mark, word };
}

/** Whether nothing will happen to the order any more. @param {{situation: string}} order */
export const isOver = ({ situation }) => Boolean(vocabulary.orders[situation]?.isOver);

/** How a step looks. @param {{state: string, failureCount?: number, threshold?: number}} step @returns {{look: Look, word: string}} */
export function stepLook({ state, failureCount, threshold }) {
  const term = vocabulary.steps[state];
  if (failureCount && term?.mayBeTriedAgain)
    return { look: "again", word: `Trying again, ${failureCount + 1} of ${threshold}` };
  return { look: term?.mark ?? "pending", word: term?.word ?? state };
}

/** What can be done under this name. @param {string} name @returns {Action} */
export const action = (name) =>
  vocabulary.actions.find((each) => each.name === name) ?? {
    name,
    title: name,
    button: name,
    effect: "",
    danger: false,
    ofStep: false,
    lists: [],
  };

/** What can be done to all orders of a list. @param {string} list */
export const actionsOf = (list) => vocabulary.actions.filter(({ lists }) => lists.includes(list));

/** The lists of open orders. */
export const lists = () => Object.keys(vocabulary.lists ?? {});

/** The mark of a list. @param {string} name @returns {Look} */
export const markOf = (name) => vocabulary.lists?.[name] ?? "pending";
