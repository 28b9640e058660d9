/** The operator at this browser: the key, for this tab only, and the name that goes into the history. */

import { call } from "../common/api.js";

const KEY = "operator-key";
const NAME = "operator-name";

export const hasKey = () => sessionStorage.getItem(KEY) !== null;
/** @param {string} key */
export const setKey = (key) => sessionStorage.setItem(KEY, key);
export const forgetKey = () => sessionStorage.removeItem(KEY);

export const operator = () => localStorage.getItem(NAME) ?? "";
/** @param {string} name */
export const setOperator = (name) => localStorage.setItem(NAME, name);

/** What was answered last, by path: what has not changed is not sent again. @type {Map<string, {etag: string, data: any}>} */
const known = new Map();

/**
 * Ask the operators' API. Raises `Problem`.
 * @param {string} path @param {{method?: string, body?: any, signal?: AbortSignal}} [options] @returns {Promise<any>}
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

/** Who asks, for lists that are made by a dry run. */
export const looking = () => ({ operator: operator() || "console", note: "looks at the list" });
