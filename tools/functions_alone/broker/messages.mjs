/** The messages of one queue by sequence number, which only grows. */

const SLACK = 1024;

export class Messages {
  #bySequence = new Map();
  #sequences = []; // ascending, with those of messages that are gone, until these outnumber the others

  get size() {
    return this.#bySequence.size;
  }

  get(sequence) {
    return this.#bySequence.get(sequence);
  }

  has(message) {
    return this.#bySequence.get(message.sequence) === message;
  }

  /** The message's sequence number must be greater than any before. */
  add(message) {
    this.#bySequence.set(message.sequence, message);
    this.#sequences.push(message.sequence);
  }

  delete(message) {
    this.#bySequence.delete(message.sequence);
    if (this.#sequences.length > 2 * this.size + SLACK) {
      this.#sequences = this.#sequences.filter((sequence) => this.#bySequence.has(sequence));
    }
  }

  values() {
    return this.#bySequence.values();
  }

  /** Those from this sequence number on, in order. */
  *from(sequence) {
    for (let at = this.#firstAt(sequence); at < this.#sequences.length; at += 1) {
      const message = this.#bySequence.get(this.#sequences[at]);
      if (message !== undefined) yield message;
    }
  }

  #firstAt(sequence) {
    let [low, high] = [0, this.#sequences.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#sequences[middle] < sequence) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
