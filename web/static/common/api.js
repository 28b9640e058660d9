/** Calls to the app's API, and what they say when they fail. */

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

/** @typedef {Error & {faults?: string[]}} Failure what is caught: a `Problem`, or a mistake of the page itself */

const PLAIN = {
  401: "The operators' key is not accepted",
  404: "There is no such thing",
  0: "The app cannot be reached",
};

/**
 * Ask the API; returns what it answers, as text and as data. Raises `Problem`.
 * @param {string} path
 * @param {{method?: string, body?: any, headers?: Record<string, string>, signal?: AbortSignal}} [options]
 * @returns {Promise<{status: number, data: any, text: string, etag: string | null, retryAfter?: number}>}
 */
export async function call(path, { method, body, headers = {}, signal } = {}) {
  const given = body === undefined ? {} : { body: JSON.stringify(body), method: method ?? "POST" };
  let answer, text;
  try {
    // Nothing of what operators see is left on the disk.
    answer = await fetch(path, {
      method,
      ...given,
      headers: { ...headers, ...(body && { "Content-Type": "application/json" }) },
      cache: "no-store",
      signal,
    });
    text = await answer.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem(0, { title: PLAIN[0] });
  }
  const data = parsed(text);
  const { status } = answer;
  const retryAfter = Number(answer.headers.get("Retry-After")) || undefined;
  if (answer.ok || status === 304) return { status, data, text, etag: answer.headers.get("ETag"), retryAfter };
  throw new Problem(status, data ?? { title: PLAIN[status] ?? `The app answered ${status}` }, retryAfter);
}

function parsed(text) {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}
