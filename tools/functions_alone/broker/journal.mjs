/**
 * The queues on disk, so that a broker which is killed loses nothing that it acknowledged: every change is appended to one
 * file before a client hears of it. What the operating system has taken outlives the process, so nothing waits for the disk;
 * a power failure may cost the last seconds.
 *
 * The file has a head and then records, each of one queue: a whole message, what changed in one, or the number of one that is
 * gone. At the start, and whenever the changes outgrow the messages, it is written anew with what is there.
 */
import { closeSync, existsSync, fstatSync, fsyncSync, mkdirSync, openSync, renameSync, statSync } from 'node:fs';
import path from 'node:path';

import { toBytes, toText } from './message.mjs';
import { Records, readRecords } from './records.mjs';

const FILE_NAME = 'broker.journal';
const FORMAT = 'service-bus-broker-2';
const LEAST_CHANGES_BYTES = 64 * 1024 * 1024;

/** Fields of a message beside its bytes and those that `changeable` names. */
const UNCHANGEABLE = ['durable', 'priority', 'ttl', 'id', 'scheduledFor', 'enqueuedSequence'];
const ANNOTATIONS = ['annotations', 'deliveryAnnotations'];

export class Journal {
  #path;
  #mostChanges;
  #queues = [];
  #file = null;
  #changed = new Map(); // messages since the last flush -> their queues
  #added = new Set(); // those of them that are to be written whole
  #changesBytes = 0;
  #baseBytes = 0;

  /** @param mostChanges bytes of changes after which the file may be written anew */
  constructor(directory, mostChanges = LEAST_CHANGES_BYTES) {
    mkdirSync(directory, { recursive: true });
    this.#path = path.join(directory, FILE_NAME);
    this.#mostChanges = mostChanges;
  }

  /** Puts what the file has into these queues, and follows them from here on. */
  open(queues) {
    this.#queues = queues;
    if (existsSync(this.#path)) this.#load();
    this.#changed.clear();
    this.#writeAnew();
  }

  /** The message is new, or its content changed. */
  added(queue, message) {
    this.#changed.set(message, queue);
    this.#added.add(message);
  }

  /** Its state or lock changed, or it is gone. */
  changed(queue, message) {
    this.#changed.set(message, queue);
  }

  /** To be called before any client hears of the changes. Whoever cannot write must not answer: an error is not to be caught. */
  flush() {
    if (this.#changed.size === 0) return;
    this.#checkOwn();
    this.#changesBytes += this.#writeChanges();
    this.#changed.clear();
    this.#added.clear();
    if (this.#changesBytes > this.#mostChanges + 2 * this.#baseBytes) this.#writeAnew();
  }

  close() {
    this.flush();
    fsyncSync(this.#file);
    closeSync(this.#file);
  }

  /** Nobody would find what is written to a file that another broker, with other ports, has replaced. */
  #checkOwn() {
    const found = statSync(this.#path, { throwIfNoEntry: false });
    if (found?.ino !== fstatSync(this.#file).ino) throw new Error(`${this.#path} now belongs to another broker, or is gone.`);
  }

  /** What is gone comes last: of a message that moves, a write that is cut short leaves two rather than none. */
  #writeChanges() {
    const records = new Records(this.#file);
    const gone = [];
    for (const [message, queue] of this.#changed) {
      const held = queue.has(message);
      if (this.#added.has(message)) addWhole(records, queue, message);
      else if (held) records.add({ queue: queue.name, change: changeable(message) });
      if (!held) gone.push({ queue: queue.name, gone: message.sequence });
    }
    for (const record of gone) records.add(record);
    return records.end();
  }

  #load() {
    const kept = new Map(); // by name of queue
    let count = 0;
    try {
      for (const { record, bytes } of readRecords(this.#path)) {
        if (count === 0) checkHead(record);
        else replay(kept, record, bytes);
        count += 1;
      }
      if (count === 0) throw new Error('it is empty');
    } catch (error) {
      throw new Error(`The journal ${this.#path} cannot be read: after ${count} records: ${error.message}`);
    }
    for (const queue of this.#queues) {
      if (kept.has(queue.name)) queue.restore(kept.get(queue.name));
      kept.delete(queue.name);
    }
    for (const [name, { messages }] of kept) {
      if (messages.size > 0) console.error(`Dropped ${messages.size} messages of "${name}", which is no longer in the configuration.`);
    }
  }

  #writeAnew() {
    const temporary = `${this.#path}.tmp`;
    const file = openSync(temporary, 'w');
    this.#baseBytes = writeAll(file, this.#queues);
    this.#changesBytes = 0;
    fsyncSync(file);
    renameSync(temporary, this.#path);
    if (this.#file !== null) closeSync(this.#file);
    this.#file = file;
  }
}

function checkHead(head) {
  if (head?.format !== FORMAT) throw new Error('it is no journal of this version of the broker');
}

/** Does to the kept queues what the record says. */
function replay(kept, { queue: name, message, change, gone, ...totals }, bytes) {
  if (!kept.has(name)) kept.set(name, { lastSequence: 0, seen: new Map(), messages: new Map() });
  const queue = kept.get(name);
  if (message !== undefined) addTo(queue, fromRecord(message, bytes));
  else if (change !== undefined) Object.assign(found(queue, change.sequence), change);
  else if (gone !== undefined) queue.messages.delete(found(queue, gone).sequence);
  else Object.assign(queue, { ...totals, seen: new Map(totals.seen) });
}

function found({ messages }, sequence) {
  if (!messages.has(sequence)) throw new Error(`message ${sequence} was never there`);
  return messages.get(sequence);
}

function addTo(queue, message) {
  queue.messages.set(message.sequence, message);
  if (message.sequence <= queue.lastSequence) return;
  queue.lastSequence = message.sequence;
  // The latest comes last, as in the queue.
  queue.seen.delete(message.id);
  if (message.id !== null) queue.seen.set(message.id, { at: message.enqueuedAt, sequence: message.sequence });
}

/** Gives the number of bytes. */
function writeAll(file, queues) {
  const records = new Records(file);
  records.add({ format: FORMAT });
  for (const queue of queues) {
    const { messages, lastSequence, seen } = queue.dump();
    for (const message of messages) addWhole(records, queue, message);
    records.add({ queue: queue.name, lastSequence, seen });
  }
  return records.end();
}

function changeable({ sequence, state, enqueuedAt, expiresAt, deliveryCount, lock }) {
  return { sequence, state, enqueuedAt, expiresAt, deliveryCount, lock: lock && { token: lock.token, until: lock.until } };
}

function addWhole(records, queue, message) {
  const whole = changeable(message);
  for (const name of UNCHANGEABLE) whole[name] = message[name];
  for (const name of ANNOTATIONS) whole[name] = message[name].map(toBase64);
  records.addWithBytes({ queue: queue.name, message: whole, bytes: message.bare.length }, toBytes(message.bare));
}

function fromRecord(record, bytes) {
  for (const name of ANNOTATIONS) record[name] = record[name].map(fromBase64);
  return { ...record, bare: toText(bytes) };
}

const toBase64 = (bytes) => bytes.toString('base64');
const fromBase64 = (text) => Buffer.from(text, 'base64');
