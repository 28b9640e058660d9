/** Asks again and again: one call at a time, ever more seldom while it fails, and never while nobody looks. */

import { Misunderstood, Problem } from "./api.js";

/** @typedef {{next: number | null, changed: boolean}} Advice in how many seconds to ask again; null for not at all */

const UNCHANGED_BEFORE_REST = 6;
export const REST_SECONDS = 30;
const LONGEST_PAUSE = 60;

export class Poll {
  /**
   * @param {(signal: AbortSignal) => Promise<Advice>} ask
   * @param {(problem: Problem) => void} failed
   */
  constructor(ask, failed) {
    this.ask = ask;
    this.failed = failed;
    this.failures = 0;
    this.unchanged = 0;
    /** In how many seconds it asks again, as the last answer had it; null for not at all. @type {number | null} */
    this.pause = null;
    this.stopped = false;
    this.asking = null;
    this.again = false;
    this.seen = () => (document.hidden ? this.rest() : this.now());
    document.addEventListener("visibilitychange", this.seen);
  }

  /** Ask at once, also if it was to be asked later; if it is being asked, once more when that has its answer. */
  now() {
    if (this.stopped) return;
    if (this.asking) return void (this.again = true);
    clearTimeout(this.timer);
    this.run();
  }

  /** Ask no more until somebody looks again. */
  rest() {
    clearTimeout(this.timer);
  }

  /** Never ask again, and drop an answer that is still to come. */
  stop() {
    this.stopped = true;
    this.rest();
    this.asking?.abort();
    document.removeEventListener("visibilitychange", this.seen);
  }

  async run() {
    this.again = false;
    this.asking = new AbortController();
    let pause;
    try {
      const { next, changed } = await this.ask(this.asking.signal);
      this.failures = 0;
      this.unchanged = changed ? 0 : this.unchanged + 1;
      this.pause = next === null ? null : this.unchanged >= UNCHANGED_BEFORE_REST ? Math.max(next, REST_SECONDS) : next;
      pause = this.pause;
    } catch (error) {
      if (this.stopped) return;
      const problem = error instanceof Problem ? error : new Misunderstood(error);
      this.failures += 1;
      pause = pauseAfter(problem, this.failures);
      this.failed(problem);
    } finally {
      this.asking = null;
    }
    if (this.stopped || document.hidden) return;
    if (this.again) return this.run();
    if (pause !== null) this.timer = setTimeout(() => this.run(), pause * 1000);
  }
}

/** How many seconds to wait after a failure; null if asking again cannot help. @param {Problem} problem */
function pauseAfter({ status, retryAfter }, failures) {
  if (status === 401) return null;
  const pause = Math.min(2 ** failures, LONGEST_PAUSE) * (0.75 + Math.random() / 2);
  return Math.max(pause, retryAfter ?? 0);
}
