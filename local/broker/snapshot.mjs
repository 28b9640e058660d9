/**
 * The queues on disk between two runs: one JSON value per line, first a head, then for every queue its own line and one line
 * per message. Written as a whole when the broker stops; there is no journal, so a broker that is killed falls back to the
 * messages of its last orderly stop.
 */
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import path from 'node:path';

const FILE_NAME = 'broker.snapshot.jsonl';
const FORMAT = 'service-bus-broker-1';
const CHUNK_LINES = 1000;

export function saveSnapshot(directory, queues) {
  mkdirSync(directory, { recursive: true });
  const target = path.join(directory, FILE_NAME);
  const temporary = `${target}.tmp`;
  const file = openSync(temporary, 'w');
  writeLines(file, linesOf(queues));
  fsyncSync(file);
  closeSync(file);
  renameSync(temporary, target);
}

/** Puts the messages of the last snapshot into these queues. Messages of queues that are gone are dropped, and said so. */
export function loadSnapshot(directory, findQueue) {
  const source = path.join(directory, FILE_NAME);
  if (!existsSync(source)) return;
  const lines = readLines(source);
  for (let at = 0; at < lines.length;) {
    const { name, count, ...state } = lines[at];
    const messages = lines.slice(at + 1, at + 1 + count).map(fromLine);
    at += 1 + count;
    const queue = findQueue(name);
    if (queue !== undefined) queue.restore({ ...state, messages });
    else if (count > 0) console.error(`Dropped ${count} messages of "${name}", which is no longer in the configuration.`);
  }
}

function readLines(source) {
  let lines;
  try {
    lines = readFileSync(source, 'utf8').trimEnd().split('\n').map((line) => JSON.parse(line));
  } catch (error) {
    throw new Error(`The snapshot ${source} cannot be read: ${error.message}`);
  }
  if (lines.shift()?.format !== FORMAT) throw new Error(`${source} is not a snapshot of this broker.`);
  return lines;
}

function* linesOf(queues) {
  yield { format: FORMAT };
  for (const queue of queues) {
    const { messages, ...state } = queue.dump();
    yield { name: queue.name, count: messages.length, ...state };
    for (const message of messages) yield toLine(message);
  }
}

/** In chunks: all lines together may be longer than a string can be. */
function writeLines(file, lines) {
  let chunk = [];
  const flush = () => {
    if (chunk.length > 0) writeSync(file, `${chunk.join('\n')}\n`);
    chunk = [];
  };
  for (const line of lines) {
    chunk.push(JSON.stringify(line));
    if (chunk.length === CHUNK_LINES) flush();
  }
  flush();
}

function toLine({ bare, annotations, lock, dueAt, ...rest }) {
  return {
    ...rest,
    lock: lock && { token: lock.token, until: lock.until },
    bare: bare.toString('base64'),
    annotations: annotations.map((pair) => pair.toString('base64')),
  };
}

function fromLine({ bare, annotations, lock, ...rest }) {
  return {
    ...rest,
    lock: lock && { ...lock, holder: null },
    bare: Buffer.from(bare, 'base64'),
    annotations: annotations.map((pair) => Buffer.from(pair, 'base64')),
  };
}
