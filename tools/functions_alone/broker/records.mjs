/**
 * A file of records: each a line of JSON and, where that says how many `bytes`, as many bytes and the end of a line after it.
 * Messages are not encoded as text, because that would cost more than everything else that a broker does with one.
 */
import { closeSync, openSync, readSync, writevSync } from 'node:fs';

const CHUNK_BYTES = 1024 * 1024;
const LINE_END = 0x0a;

/** Writes records to a file, in chunks: all of them together may be more than there is room for. */
export class Records {
  #file;
  #buffers = [];
  #text = '';
  #collected = 0; // bytes, about
  #written = 0;

  constructor(file) {
    this.#file = file;
  }

  add(record) {
    this.#addText(record);
    this.#writeWhenFull();
  }

  /** The record has to say how many bytes there are. */
  addWithBytes(record, bytes) {
    this.#addText(record);
    this.#buffers.push(Buffer.from(this.#text), bytes);
    this.#text = '\n';
    this.#collected += bytes.length;
    this.#writeWhenFull();
  }

  /** Writes what is left, and gives the length of all. */
  end() {
    this.#write();
    return this.#written;
  }

  #addText(record) {
    const line = `${JSON.stringify(record)}\n`;
    this.#text += line;
    this.#collected += line.length;
  }

  #writeWhenFull() {
    if (this.#collected >= CHUNK_BYTES) this.#write();
  }

  #write() {
    const buffers = [...this.#buffers, Buffer.from(this.#text)];
    const length = buffers.reduce((sum, { length: own }) => sum + own, 0);
    const written = writevSync(this.#file, buffers);
    if (written !== length) throw new Error(`Of ${length} bytes only ${written} could be written.`);
    this.#written += length;
    this.#buffers = [];
    this.#text = '';
    this.#collected = 0;
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
