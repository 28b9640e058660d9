/** A receiving client's link, as the broker sees it: its credit, its deliveries and their settlement. */
import { randomUUID } from 'node:crypto';

import rhea from 'rhea';

import { amqpError } from './errors.mjs';
import { tagFromToken, toWire } from './message.mjs';

const { message } = rhea;
const PRE_SETTLED = 1;
const MESSAGE_FORMAT = 0;

export class LinkReceiver {
  #sender;
  #unsettled = new Map(); // deliveries by lock token
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
    const { delivery_count: sent, credit, session } = this.#sender;
    if (!this.#sender.is_open()) return 0;
    return Math.min(sent + credit - this.#used, session.outgoing.available());
  }

  deliver(entry) {
    const token = entry.lock?.token ?? randomUUID();
    const bytes = toWire(entry, entry.lock?.until ?? null);
    const delivery = this.#sender.send(bytes, tagFromToken(token), MESSAGE_FORMAT);
    this.#used += 1;
    if (this.removes) delivery.settled = true;
    else {
      delivery.token = token;
      this.#unsettled.set(token, delivery);
    }
  }

  /** Gives the unused credit back, as the client asked for. rhea loops for ever when there is none to give. */
  drain() {
    const left = this.credit();
    if (left <= 0) return;
    this.#used += left;
    this.#sender.set_drained(true);
  }

  /** Settles on the client's word; false when this delivery has been settled before. */
  settle(delivery, outcome, reply, details) {
    if (!this.#unsettled.has(delivery.token)) return false;
    const lock = this.#sender.route.queue.settle(delivery.token, outcome, Date.now(), details);
    this.#free(delivery, lock === null ? lockLost() : reply);
    return true;
  }

  /** Tells the client at once: it may be waiting for the answer to a settlement that came too late. */
  lockLost(lock) {
    const delivery = this.#unsettled.get(lock.token);
    if (delivery !== undefined) this.#free(delivery, lockLost());
  }

  /** The lock was ended by a management operation. */
  settledElsewhere(lock) {
    const delivery = this.#unsettled.get(lock.token);
    if (delivery !== undefined) this.#free(delivery, message.released());
  }

  close() {
    this.#unsettled.clear();
  }

  /** rhea keeps a delivery until both sides settled it, and all before it: 2,048 forgotten ones stop everything. */
  #free(delivery, outcome) {
    this.#unsettled.delete(delivery.token);
    delivery.update(true, outcome?.described());
    delivery.remote_settled = true;
    if (delivery.id < this.#sender.session.outgoing.next_pending_delivery) delivery.data = [];
  }
}

/** Why the client dead-letters this delivery. */
export function deadLetterDetails(delivery) {
  const { error } = delivery.remote_state;
  return { reason: error?.info?.DeadLetterReason, description: error?.info?.DeadLetterErrorDescription ?? error?.description };
}

function lockLost() {
  const description = 'The lock supplied is invalid. Either the lock expired, or the message has already been removed.';
  return message.rejected({ error: amqpError('com.microsoft:message-lock-lost', description) });
}
