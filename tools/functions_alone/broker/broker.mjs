/**
 * The queues by name, the receivers that wait for their messages, and the one timer for whatever is due next.
 *
 * A receiver, here, is anything with: credit() (how many messages it can take now), removes (receive-and-delete),
 * deliver(message) and lockLost(lock).
 */
import { Queue } from './queue.mjs';

const DEAD_LETTER_SUFFIX = '/$DeadLetterQueue';
const LONGEST_TIMEOUT = 2 ** 31 - 1;
/** Messages of one queue; what is left waits until clients had their turn. */
const MOST_PER_TICK = 1000;

export class Broker {
  #queues = new Map(); // by name in lower case, dead-letter queues included
  #receivers = new Map(); // queue -> its receivers, the next to be served first
  #timer = null;
  #timerAt = Infinity;
  #journal;

  /** @param config the rules of every queue by name, as `readConfig` gives them */
  constructor(config, journal) {
    this.#journal = journal;
    for (const [name, rules] of config) this.#add(name, rules);
    for (const [name, { forwardDeadLetters: to }] of config) {
      if (to) this.find(name).forwardDeadLetters(this.find(to));
    }
  }

  #add(name, rules) {
    const deadLetterRules = { ...rules, timeToLive: null, deadLetterExpired: false, duplicateWindow: null };
    const deadLetters = new Queue(name + DEAD_LETTER_SUFFIX, deadLetterRules, null, this.#journal);
    for (const queue of [new Queue(name, rules, deadLetters, this.#journal), deadLetters]) {
      this.#queues.set(queue.name.toLowerCase(), queue);
      this.#receivers.set(queue, []);
    }
  }

  /** The queue of this name (case does not count); undefined when there is none. */
  find(name) {
    return this.#queues.get(name.toLowerCase());
  }

  all() {
    return [...this.#queues.values()];
  }

  counts() {
    const queues = this.all().filter((queue) => queue.deadLetters !== null);
    return Object.fromEntries(queues.map((queue) => [queue.name, queue.counts()]));
  }

  join(queue, receiver) {
    this.#receivers.get(queue).push(receiver);
  }

  leave(queue, receiver) {
    const receivers = this.#receivers.get(queue);
    const at = receivers.indexOf(receiver);
    if (at >= 0) receivers.splice(at, 1);
  }

  /** To be called after every change: hands out what can be handed out and sets the timer. */
  serve(queue) {
    const now = Date.now();
    this.#handOut(queue, now);
    if (queue.deadLetters !== null) this.serve(queue.deadLetters);
    this.#wakeAt(queue.nextDue());
  }

  /** To be called before any client hears of a change. */
  keep() {
    this.#journal.flush();
  }

  /** Stops the timer: from here on nothing changes by itself. */
  stop() {
    clearTimeout(this.#timer);
    this.#timerAt = -Infinity;
  }

  #handOut(queue, now) {
    while (queue.hasReady(now)) {
      const receiver = this.#nextReceiver(queue);
      if (receiver === null) return;
      receiver.deliver(receiver.removes ? queue.removeNext(now) : queue.lockNext(now, receiver));
    }
  }

  /** Receivers take turns. */
  #nextReceiver(queue) {
    const receivers = this.#receivers.get(queue);
    const at = receivers.findIndex((receiver) => receiver.credit() > 0);
    if (at < 0) return null;
    const [receiver] = receivers.splice(at, 1);
    receivers.push(receiver);
    return receiver;
  }

  #wakeAt(due) {
    if (due >= this.#timerAt) return;
    clearTimeout(this.#timer);
    this.#timerAt = due;
    const wait = Math.min(Math.max(due - Date.now(), 0), LONGEST_TIMEOUT);
    this.#timer = setTimeout(() => this.#tick(), wait);
  }

  #tick() {
    const now = Date.now();
    this.#timerAt = Infinity;
    for (const queue of this.all()) {
      if (queue.nextDue() <= now) {
        for (const lock of queue.tick(now, MOST_PER_TICK)) lock.holder?.lockLost(lock);
        this.serve(queue);
      } else this.#wakeAt(queue.nextDue());
    }
    this.keep();
  }
}
