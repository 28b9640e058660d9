/** Calls to the app's API, and what they say when they fail. */

import { parse } from "./json.js";
import { setServerTime } from "./time.js";
import { text as words } from "./words.js";

/** How long a call may take, unless it says otherwise: nobody is left to look at a page that waits for ever. */
const LONGEST_SECONDS = 15;

/** An answer that is no success, in the words of its problem details. */
export class Problem extends Error {
  /** @param {number} status 0 if nobody answered @param {Record<string, any>} body @param {number} [retryAfter] seconds */
  constructor(status, body, retryAfter) {
    super([body.title, body.detail].filter(Boolean).join("; "));
    this.status = status;
    this.detail = body.detail ?? "";
    /** @type {string[]} */
    this.faults = body.faults ?? [];
    this.retryAfter = retryAfter;
  }
}

/** What a page says of an answer that it cannot read, or of a mistake of its own: an upgrade may have come meanwhile. */
export class Misunderstood extends Problem {
  /** @param {unknown} cause */
  constructor(cause) {
    super(0, { title: words("page.api.misunderstood"), faults: [String(cause)] });
    this.cause = cause;
  }
}

/** @typedef {Error & {faults?: string[]}} Failure what is caught: a `Problem`, or a mistake of the page itself */

/** What an answer says that has no problem details. @param {number} status */
function plain(status) {
  if (status === 401) return words("page.api.key-refused");
  return status === 404 ? words("page.api.not-found") : words("page.api.status", { status });
}

/**
 * Ask the API; returns what it answers, as text and as data. Raises `Problem`, also if no answer comes in time.
 * @param {string} path
 * @param {{method?: string, body?: any, headers?: Record<string, string>, signal?: AbortSignal, seconds?: number}} [options]
 * @returns {Promise<{status: number, data: any, text: string, etag: string | null, retryAfter?: number}>}
 */
export async function call(path, { method, body, headers = {}, signal, seconds = LONGEST_SECONDS } = {}) {
  const given = body === undefined ? {} : { body: JSON.stringify(body), method: method ?? "POST" };
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), seconds * 1000);
  let answer, text;
  try {
    // Nothing of what operators see is left on the disk.
    answer = await fetch(path, {
      method,
      ...given,
      headers: { ...headers, ...(body && { "Content-Type": "application/json" }) },
      cache: "no-store",
      signal: signal ? AbortSignal.any([signal, late.signal]) : late.signal,
    });
    text = await answer.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem(0, { title: late.signal.aborted ? words("page.api.late", { seconds }) : words("page.api.away") });
  } finally {
    clearTimeout(timer);
  }
  setServerTime(answer.headers.get("Date"));
  const data = parsed(text);
  const { status } = answer;
  const retryAfter = Number(answer.headers.get("Retry-After")) || undefined;
  if (answer.ok || status === 304) return { status, data, text, etag: answer.headers.get("ETag"), retryAfter };
  throw new Problem(status, data ?? { title: plain(status) }, retryAfter);
}

function parsed(text) {
  try {
    return text ? parse(text) : null;
  } catch {
    return null;
  }
}
