/** A receiving client's link, as the broker sees it: its credit, its deliveries and their settlement. */
import { randomUUID } from 'node:crypto';

import rhea from 'rhea';

import { amqpError } from './errors.mjs';
import { tagFromToken, toWire } from './message.mjs';

const { message } = rhea;
const PRE_SETTLED = 1;
const MESSAGE_FORMAT = 0;
const MOST_LOST = 10_000;
/** Places of the fields in the lists of a modified and a rejected outcome, and of an error. */
const MODIFIED_ANNOTATIONS = 2;
const REJECTED_ERROR = 0;
const ERROR_INFO = 2;

export class LinkReceiver {
  #sender;
  #unsettled = new Map(); // deliveries by lock token
  #lost = new Set(); // those of them whose lock has ended, the oldest first
  #used = 0; // credit used up by this link so far: messages handed to rhea, and credit drained

  /** @param sender rhea's end of the link, which sends */
  constructor(sender) {
    this.#sender = sender;
    /** Receive-and-delete. */
    this.removes = sender.snd_settle_mode === PRE_SETTLED;
  }

  /**
   * How many messages the client can take now. rhea counts a message only when it writes it, later in the turn, so its own
   * `credit` would be given out twice; its sum with `delivery_count` does not change by that.
   */
  credit() {
    if (!this.#sender.is_open()) return 0;
    return Math.min(this.#unusedCredit(), this.#sender.session.outgoing.available());
  }

  #unusedCredit() {
    return this.#sender.delivery_count + this.#sender.credit - this.#used;
  }

  deliver(entry) {
    const token = entry.lock?.token ?? randomUUID();
    const bytes = toWire(entry, entry.lock);
    const delivery = this.#sender.send(bytes, tagFromToken(token), MESSAGE_FORMAT);
    this.#used += 1;
    if (this.removes) delivery.settled = true;
    else {
      delivery.token = token;
      this.#unsettled.set(token, delivery);
    }
  }

  /** Gives the unused credit back, as the client asked for. Below zero rhea would loop for ever. */
  drain() {
    const left = this.#unusedCredit();
    if (!this.#sender.is_open() || left < 0) return;
    // The SDK for .NET waits for a flow also when messages have used up all credit. rhea writes it after them.
    if (left === 0) this.#sender.issue_flow = true;
    else this.#sender.set_drained(true);
    this.#used += left;
  }

  /** Settles on the client's word; false when this delivery has been settled before. */
  settle(delivery, outcome, reply, properties) {
    if (!this.#unsettled.has(delivery.token)) return false;
    const lock = this.#sender.route.queue.settle(delivery.token, outcome, Date.now(), properties);
    this.#forget(delivery);
    delivery.update(true, (lock === null ? lockLost() : reply)?.described());
    // rhea keeps a delivery until both sides settled it.
    delivery.remote_settled = true;
    return true;
  }

  /** Answers a settlement that cannot be; the client still has the message, and can settle it otherwise. */
  refuse(delivery, error) {
    delivery.update(true, message.rejected({ error }).described());
  }

  /**
   * The lock ran out, or was ended by a management operation. The client learns of it when it settles: the SDK would take
   * what it did not ask for as the answer to another of its requests.
   */
  lockLost(lock) {
    const delivery = this.#unsettled.get(lock.token);
    if (delivery === undefined) return;
    this.#lost.add(delivery);
    this.#dropData(delivery);
    if (this.#lost.size > MOST_LOST) this.#giveUp(this.#lost.values().next().value);
  }

  close() {
    this.#unsettled.clear();
    this.#lost.clear();
  }

  #giveUp(delivery) {
    this.#forget(delivery);
    delivery.settled = true;
    delivery.remote_settled = true;
  }

  #forget(delivery) {
    this.#unsettled.delete(delivery.token);
    this.#lost.delete(delivery);
    this.#dropData(delivery);
  }

  #dropData(delivery) {
    if (delivery.id < this.#sender.session.outgoing.next_pending_delivery) delivery.data = [];
  }
}

/** What the client wants to be changed in a message that it abandons or defers: rhea's typed values by name. */
export function modifiedProperties(delivery) {
  return typedValues(delivery.remote_state.value[MODIFIED_ANNOTATIONS]);
}

/** Why the client dead-letters a message, and what else it wants to be changed in it. */
export function deadLetterProperties(delivery) {
  const error = delivery.remote_state.value[REJECTED_ERROR];
  const properties = typedValues(error?.value?.[ERROR_INFO]);
  const { description } = delivery.remote_state.error ?? {};
  return description && !properties.DeadLetterErrorDescription
    ? { ...properties, DeadLetterErrorDescription: description }
    : properties;
}

/** The pairs of one of rhea's typed maps, if there is one, without those that have no value. */
function typedValues(map) {
  const items = map?.value ?? [];
  const pairs = items.flatMap((item, at) => (at % 2 === 0 ? [[String(item.value), items[at + 1]]] : []));
  return Object.fromEntries(pairs.filter(([, { value }]) => value !== null));
}

function lockLost() {
  const description = 'The lock supplied is invalid. Either the lock expired, or the message has already been removed.';
  return message.rejected({ error: amqpError('com.microsoft:message-lock-lost', description) });
}
