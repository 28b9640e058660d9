/**
 * A file of records: each a line of JSON and, where that says how many `bytes`, as many bytes and the end of a line after it.
 * Messages are not encoded as text, because that would cost more than everything else that a broker does with one.
 */
import { closeSync, openSync, readSync, writevSync } from 'node:fs';

const CHUNK_BYTES = 1024 * 1024;
const LINE_END = 0x0a;

/** Collects records, and gives them as buffers. */
export class Records {
  #buffers = [];
  #text = '';

  add(record) {
    this.#text += `${JSON.stringify(record)}\n`;
  }

  /** The record has to say how many bytes there are. */
  addWithBytes(record, bytes) {
    this.add(record);
    this.#buffers.push(Buffer.from(this.#text), bytes);
    this.#text = '\n';
  }

  /** Writes what was collected, and gives its length. */
  writeTo(file) {
    const buffers = [...this.#buffers, Buffer.from(this.#text)];
    const length = buffers.reduce((sum, { length: own }) => sum + own, 0);
    const written = writevSync(file, buffers);
    if (written !== length) throw new Error(`Of ${length} bytes only ${written} could be written.`);
    this.#buffers = [];
    this.#text = '';
    return length;
  }
}

/** Every record with its bytes; without the last one if its writing was cut short. Wrong JSON throws. */
export function* readRecords(path) {
  const reader = new Reader(path);
  try {
    for (let line = reader.line(); line !== null; line = reader.line()) {
      const record = JSON.parse(line);
      if (record.bytes === undefined) yield { record };
      else {
        const bytes = reader.bytes(record.bytes);
        if (reader.line() === null) return;
        yield { record, bytes };
      }
    }
  } finally {
    reader.close();
  }
}

/** Reads a file in chunks: as a whole it may be longer than a string can be. */
class Reader {
  #file;
  #unread = Buffer.alloc(0);

  constructor(path) {
    this.#file = openSync(path, 'r');
  }

  /** The next line; null when there is none, or none that has an end. */
  line() {
    let end;
    for (let from = 0; (end = this.#unread.indexOf(LINE_END, from)) < 0;) {
      from = this.#unread.length;
      if (!this.#readMore()) return null;
    }
    return this.#take(end + 1).toString('utf8', 0, end);
  }

  /** So many bytes, or what there is. A copy, because what is kept would keep the whole chunk. */
  bytes(count) {
    while (this.#unread.length < count && this.#readMore());
    return Buffer.from(this.#take(count));
  }

  close() {
    closeSync(this.#file);
  }

  #take(count) {
    const taken = this.#unread.subarray(0, count);
    this.#unread = this.#unread.subarray(count);
    return taken;
  }

  #readMore() {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    const count = readSync(this.#file, chunk);
    this.#unread = Buffer.concat([this.#unread, chunk.subarray(0, count)]);
    return count > 0;
  }
}
