/**
 * The rules of one queue: who may have which message, until when, and what becomes of it. A state machine without input,
 * output or clock: every operation is given the time (milliseconds since 1970), and what is due is asked for and done by
 * `nextDue` and `tick`.
 *
 * A message is a record of what the sender sent (see message.mjs) and: sequence, state ('active', 'scheduled',
 * 'deferred'), enqueuedAt, expiresAt, deliveryCount, lock ({token, until, holder} or null) and dueAt.
 */
import { randomUUID } from 'node:crypto';

import { Heap } from './heap.mjs';
import { withProperties, withSource } from './message.mjs';
import { Messages } from './messages.mjs';

const FORGETTINGS_PER_WINDOW = 10;

/** For a queue that is kept nowhere. */
const NO_JOURNAL = { added() {}, changed() {} };

export class Queue {
  #messages = new Messages();
  #locked = new Map(); // messages by lock token
  #ready = new Heap((sequence) => sequence, (sequence) => this.#isReady(sequence)); // of messages that are active and not locked
  #due = new Heap((entry) => entry.at, (entry) => this.#isDue(entry)); // one living entry per message that time will change
  #seen = new Map(); // message id -> {at, sequence}, oldest first, for duplicate detection
  #forgetAt = 0; // when those of them that are too old are next dropped
  #lastSequence = 0;
  #journal;
  #forwards = false;

  /**
   * @param rules lockDuration, maxDeliveryCount, timeToLive (null: none), deadLetterExpired, duplicateWindow (null: off)
   * @param deadLetters the queue that takes what this one gives up; null for a dead-letter queue itself
   * @param journal is told of every message that is added or whose content changes, and of every other change to one
   */
  constructor(name, rules, deadLetters = null, journal = NO_JOURNAL) {
    this.name = name;
    this.rules = rules;
    this.deadLetters = deadLetters;
    this.#journal = journal;
  }

  /** From here on this queue takes what it gives up, instead of its own dead-letter queue. */
  forwardDeadLetters(queue) {
    this.deadLetters = queue;
    this.#forwards = true;
  }

  // --- arrival

  /** Takes a message in and gives its sequence number; of a duplicate, that of the first one. */
  put(message, now) {
    const first = this.#duplicateOf(message, now);
    if (first !== null) return first;
    message.sequence = ++this.#lastSequence;
    message.deliveryCount ??= 0;
    message.lock = null;
    message.dueAt = null;
    message.ttl = this.#timeToLive(message);
    this.#remember(message, now);
    this.#messages.add(message);
    this.#journal.added(this, message);
    if (message.scheduledFor !== null && message.scheduledFor > now) this.#schedule(message, now);
    else this.#enqueue(message, now);
    return message.sequence;
  }

  /** The shorter of the message's own and the queue's; null when there is neither. */
  #timeToLive({ ttl }) {
    const { timeToLive } = this.rules;
    return timeToLive === null ? ttl : Math.min(ttl ?? Infinity, timeToLive);
  }

  #schedule(message, now) {
    message.state = 'scheduled';
    message.enqueuedAt = now;
    message.expiresAt = null;
    this.#plan(message);
  }

  /** The time to live starts when the message becomes active. */
  #enqueue(message, now) {
    message.state = 'active';
    message.enqueuedAt = now;
    message.expiresAt = this.deadLetters !== null && message.ttl !== null ? now + message.ttl : null;
    this.#makeReady(message, now);
  }

  #makeReady(message, now) {
    if (isExpired(message, now)) return this.#expire(message, now);
    this.#plan(message);
    this.#ready.push(message.sequence);
  }

  #isReady(sequence) {
    const message = this.#messages.get(sequence);
    return message?.state === 'active' && message.lock === null;
  }

  #duplicateOf(message, now) {
    const { duplicateWindow } = this.rules;
    if (duplicateWindow === null || message.id === null) return null;
    const first = this.#seen.get(message.id);
    return first !== undefined && first.at > now - duplicateWindow ? first.sequence : null;
  }

  #remember(message, now) {
    if (this.rules.duplicateWindow === null || message.id === null) return;
    this.#seen.delete(message.id); // The latest comes last.
    this.#seen.set(message.id, { at: now, sequence: message.sequence });
    if (now >= this.#forgetAt) this.#forget(now);
  }

  /** Many at once: a map whose first entries are gone is slow to iterate. */
  #forget(now) {
    const { duplicateWindow } = this.rules;
    for (const [id, { at }] of this.#seen) {
      if (at > now - duplicateWindow) break;
      this.#seen.delete(id);
    }
    this.#forgetAt = now + duplicateWindow / FORGETTINGS_PER_WINDOW;
  }

  // --- delivery

  /** Whether a message could be received now. What has expired is passed over, and left to `tick`. */
  hasReady(now) {
    for (let sequence; (sequence = this.#ready.peek()) !== undefined; this.#ready.pop()) {
      if (this.#isReady(sequence) && !isExpired(this.#messages.get(sequence), now)) return true;
    }
    return false;
  }

  #takeReady() {
    return this.#messages.get(this.#ready.pop());
  }

  /** Locks the next message for `holder`, which the queue only keeps and gives back; null when there is none. */
  lockNext(now, holder) {
    return this.hasReady(now) ? this.#lock(this.#takeReady(), now, holder) : null;
  }

  /** Removes the next message: receive-and-delete; null when there is none. */
  removeNext(now) {
    return this.hasReady(now) ? this.#remove(this.#takeReady()) : null;
  }

  /** Locks (or removes) these deferred messages; null, and nothing done, when one of them is not to be had. */
  receiveDeferred(sequences, now, { remove }) {
    const messages = sequences.map((sequence) => this.#messages.get(sequence));
    if (!messages.every((message) => message?.state === 'deferred' && message.lock === null)) return null;
    return messages.map((message) => (remove ? this.#remove(message) : this.#lock(message, now, null)));
  }

  #lock(message, now, holder) {
    message.lock = { token: randomUUID(), until: now + this.rules.lockDuration, holder };
    this.#locked.set(message.lock.token, message);
    this.#journal.changed(this, message);
    this.#plan(message);
    return message;
  }

  /** The ends of the renewed locks; null, and nothing done, when one of them is lost. */
  renew(tokens, now) {
    if (!tokens.every((token) => this.#holds(token, now))) return null;
    const until = now + this.rules.lockDuration;
    for (const message of tokens.map((token) => this.#locked.get(token))) {
      message.lock.until = until;
      this.#journal.changed(this, message);
    }
    return tokens.map(() => until);
  }

  #holds(token, now) {
    return (this.#locked.get(token)?.lock.until ?? 0) > now;
  }

  // --- settlement

  /**
   * Ends a lock with 'completed', 'abandoned', 'released' (which does not count as a delivery), 'deferred' or
   * 'deadLettered' (which a dead-letter queue cannot do). `properties` become application properties of the message.
   * Gives the lock that ended; null when it had been lost before.
   */
  settle(token, outcome, now, properties = {}) {
    if (!this.#holds(token, now)) return null;
    const message = this.#locked.get(token);
    // First, because what cannot be encoded throws, and must then change nothing.
    const bare = withProperties(message.bare, properties);
    const lock = this.#unlock(message);
    if (bare !== message.bare) this.#journal.added(this, Object.assign(message, { bare }));
    if (outcome === 'completed') this.#remove(message);
    else if (outcome === 'released') this.#giveBack(message, now);
    else if (outcome === 'deferred') this.#defer(message, now);
    else if (outcome === 'deadLettered') this.#deadLetter(message, now);
    else this.#failed(message, now);
    return lock;
  }

  #unlock(message) {
    const { lock } = message;
    this.#locked.delete(lock.token);
    message.lock = null;
    this.#journal.changed(this, message);
    return lock;
  }

  #giveBack(message, now) {
    if (message.state === 'active') this.#makeReady(message, now);
    else this.#plan(message);
  }

  #defer(message, now) {
    message.deliveryCount += 1;
    message.state = 'deferred';
    if (isExpired(message, now)) this.#expire(message, now);
    else this.#plan(message);
  }

  /** A delivery that came to nothing: abandoned, or its lock ran out. */
  #failed(message, now) {
    message.deliveryCount += 1;
    const limit = this.rules.maxDeliveryCount;
    if (this.deadLetters === null || message.state !== 'active' || message.deliveryCount < limit) {
      return this.#giveBack(message, now);
    }
    const description = `Message could not be consumed after ${limit} delivery attempts.`;
    this.#deadLetter(message, now, { DeadLetterReason: 'MaxDeliveryCountExceeded', DeadLetterErrorDescription: description });
  }

  #expire(message, now) {
    if (!this.rules.deadLetterExpired) return this.#remove(message);
    const description = 'The message expired and was dead lettered.';
    this.#deadLetter(message, now, { DeadLetterReason: 'TTLExpiredException', DeadLetterErrorDescription: description });
  }

  #deadLetter(message, now, properties = {}) {
    const bare = withProperties(message.bare, properties);
    const dead = { ...message, bare, enqueuedSequence: message.sequence, scheduledFor: null };
    this.deadLetters.put(this.#forwards ? forwarded(dead, this.name) : dead, now);
    this.#remove(message);
  }

  #remove(message) {
    this.#messages.delete(message);
    this.#journal.changed(this, message);
    this.#tidy();
    return message;
  }

  #tidy() {
    this.#ready.tidy(this.#messages.size);
    this.#due.tidy(this.#messages.size);
  }

  // --- looking and cancelling

  /** Up to `count` messages from this sequence number on, whatever their state. */
  *peek(fromSequence, count) {
    let left = count;
    for (const message of this.#messages.from(fromSequence)) {
      if (left === 0) return;
      left -= 1;
      yield message;
    }
  }

  /** Removes scheduled messages; false, and nothing done, when one of them is not scheduled (any more). */
  cancelScheduled(sequences) {
    if (!sequences.every((sequence) => this.#messages.get(sequence)?.state === 'scheduled')) return false;
    for (const sequence of sequences) this.#remove(this.#messages.get(sequence));
    return true;
  }

  counts() {
    const counts = { active: 0, locked: 0, scheduled: 0, deadLettered: this.#forwards ? 0 : (this.deadLetters?.size ?? 0) };
    for (const message of this.#messages.values()) {
      if (message.lock !== null) counts.locked += 1;
      else if (message.state !== 'deferred') counts[message.state] += 1;
    }
    return counts;
  }

  get size() {
    return this.#messages.size;
  }

  has(message) {
    return this.#messages.has(message);
  }

  // --- time

  /** When `tick` has something to do; Infinity when never. */
  nextDue() {
    return this.#due.peek()?.at ?? Infinity;
  }

  /**
   * Does what is due, for up to `most` messages: ends locks, activates scheduled messages, expires old ones. Gives the locks
   * that were lost.
   */
  tick(now, most = Infinity) {
    const lost = [];
    for (let done = 0; done < most && this.nextDue() <= now; done += 1) {
      const entry = this.#due.pop();
      if (!this.#isDue(entry)) continue;
      const message = this.#messages.get(entry.sequence);
      message.dueAt = null;
      if (dueTime(message) > now) this.#plan(message);
      else if (message.state === 'scheduled') this.#activate(message, now);
      else if (message.lock === null) this.#expire(message, now);
      else {
        lost.push(this.#unlock(message));
        this.#failed(message, now);
      }
    }
    return lost;
  }

  #activate(message, now) {
    this.#journal.changed(this, message);
    this.#enqueue(message, now);
  }

  #isDue({ at, sequence }) {
    return this.#messages.get(sequence)?.dueAt === at;
  }

  /** One entry per message: a time that moved away is only looked at again when the old one comes. */
  #plan(message) {
    const at = dueTime(message);
    if (at === Infinity || (message.dueAt !== null && message.dueAt <= at)) return;
    message.dueAt = at;
    this.#due.push({ at, sequence: message.sequence });
    this.#tidy();
  }

  // --- keeping

  /** What a restart must bring back. */
  dump() {
    return { lastSequence: this.#lastSequence, seen: [...this.#seen], messages: [...this.#messages.values()] };
  }

  restore({ lastSequence, seen, messages }) {
    this.#lastSequence = lastSequence;
    if (this.rules.duplicateWindow !== null) this.#seen = new Map(seen);
    for (const message of messages.values()) {
      message.dueAt = null;
      this.#messages.add(message);
      if (message.lock !== null) this.#locked.set(message.lock.token, message);
      else if (message.state === 'active') this.#ready.push(message.sequence);
      this.#plan(message);
    }
  }
}

/** Delivered anew from the beginning, and named after the queue that gave it up. */
function forwarded(message, source) {
  return { ...message, deliveryCount: 0, annotations: withSource(message.annotations, source) };
}

function isExpired(message, now) {
  return message.expiresAt !== null && message.expiresAt <= now;
}

/** When time alone changes this message. A locked message does not expire before it is given back. */
function dueTime(message) {
  if (message.state === 'scheduled') return message.scheduledFor;
  if (message.lock !== null) return message.lock.until;
  return message.expiresAt ?? Infinity;
}
