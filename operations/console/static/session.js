/** The operator at this browser: the key, while a tab has it, and the name that goes into the history. */

import { Problem, call } from "../../../engine/pages/static/common/api.js";
import { text } from "../../../engine/pages/static/common/words.js";

const KEY = "operator-key";
const NAME = "operator-name";
const LONGEST_ACTION_SECONDS = 60;

export const hasKey = () => sessionStorage.getItem(KEY) !== null;
/** @param {string} key */
export const setKey = (key) => sessionStorage.setItem(KEY, key);
export const forgetKey = () => sessionStorage.removeItem(KEY);

/**
 * Share the key with the other tabs of this console: a new one asks the others, and has it from their memory; where it
 * is forgotten on purpose, all forget it.
 * @param {() => void} given called when another tab gave the key @param {() => void} gone called when all forget it
 * @returns {() => void} makes all tabs forget it
 */
export function shareKey(given, gone) {
  const tabs = new BroadcastChannel(KEY);
  tabs.onmessage = ({ data }) => {
    if (data.wanted && hasKey()) tabs.postMessage({ key: sessionStorage.getItem(KEY) });
    if (data.forgotten && hasKey()) gone();
    if (data.key && !hasKey()) {
      setKey(data.key);
      given();
    }
  };
  if (!hasKey()) tabs.postMessage({ wanted: true });
  return () => tabs.postMessage({ forgotten: true });
}

export const operator = () => localStorage.getItem(NAME) ?? "";
/** @param {string} name */
export const setOperator = (name) => localStorage.setItem(NAME, name);

/** The app reuses what it read for two seconds: for longer than that, what is asked after an action is read anew. */
const READ_ANEW_MS = 4_000;
let actedAt = -Infinity;

/** The address of what may be a reading that others share; after an action of this tab, of a new one. @param {string} path */
export const sinceActing = (path) => (performance.now() - actedAt < READ_ANEW_MS ? `${path}?fresh=true` : path);

/** What was answered last, by path: what has not changed is not sent again. @type {Map<string, {etag: string, data: any}>} */
const known = new Map();

/**
 * Ask the operators' API. Raises `Problem`.
 * @param {string} path @param {{method?: string, body?: any, signal?: AbortSignal, seconds?: number}} [options] @returns {Promise<any>}
 */
export async function ask(path, options = {}) {
  const before = options.body || options.method ? undefined : known.get(path);
  const headers = {
    "x-functions-key": sessionStorage.getItem(KEY) ?? "",
    ...(before && { "If-None-Match": before.etag }),
  };
  const { status, data, etag } = await call(path, { ...options, headers });
  if (before && status === 304) return before.data;
  if (etag) known.set(path, { etag, data });
  return data;
}

/**
 * Let the app do something, which may take longer than a look. Raises `Problem`.
 * @param {string} path @param {any} body
 */
export async function send(path, body) {
  try {
    return await ask(path, { body, seconds: LONGEST_ACTION_SECONDS });
  } catch (fault) {
    if (fault instanceof Problem && fault.status === 0) fault.faults.push(text("console.session.maybe-done"));
    throw fault;
  } finally {
    actedAt = performance.now();
  }
}

/** Who asks, for lists that are made by a dry run. */
export const looking = () => ({ operator: operator() || "console", note: text("console.session.looks") });
