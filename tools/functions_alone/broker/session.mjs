/** What rhea's sessions do otherwise than the SDKs need. */

const MOST_UNSETTLED = 65_536;
const SLACK = 1024;

/** To be called for every new session. `isManagement(receiver)` tells a link that takes management requests. */
export function mendSession(session, isManagement) {
  session.outgoing.deliveries = new Deliveries();
  tolerateRepeatedIds(session.incoming, isManagement);
}

/**
 * Deliveries by id, each until both sides have settled it. rhea's own buffer keeps all that came after one which is held,
 * and so fills up behind a long lock.
 */
export class Deliveries {
  #byId = new Map();
  #sweepAt = SLACK;

  available() {
    return MOST_UNSETTLED - this.#byId.size;
  }

  push(delivery) {
    this.#byId.set(delivery.id, delivery);
  }

  by_id(id) {
    return this.#byId.get(id);
  }

  /** Drops the settled ones at the front, and the others when they may outnumber those that are held. */
  pop_if(isSettled) {
    for (const [id, delivery] of this.#byId) {
      if (!isSettled(delivery)) break;
      this.#byId.delete(id);
    }
    if (this.#byId.size > this.#sweepAt) this.#sweep(isSettled);
  }

  #sweep(isSettled) {
    for (const [id, delivery] of this.#byId) {
      if (isSettled(delivery)) this.#byId.delete(id);
    }
    this.#sweepAt = 2 * this.#byId.size + SLACK;
  }
}

/**
 * The Python SDK gives two management requests that it sends at the same time one delivery id, and counts both. rhea ends
 * the connection of a client that does not count up. Only management links are spared: from a sender the SDK would, after
 * such a mistake, send without end.
 */
function tolerateRepeatedIds(incoming, isManagement) {
  const onTransfer = incoming.on_transfer;
  incoming.on_transfer = function tolerant(frame, receiver) {
    const expected = this.next_delivery_id;
    const begins = !receiver._incomplete && expected !== undefined && isManagement(receiver);
    if (begins) this.next_delivery_id = frame.performative.delivery_id;
    onTransfer.call(this, frame, receiver);
    if (begins) this.next_delivery_id = expected + 1;
  };
}
