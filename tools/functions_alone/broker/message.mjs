/**
 * AMQP messages as bytes. What the sender wrote (properties, application properties, body) is kept as it came, so that no
 * AMQP type changes on the way; only the header and the annotations, which belong to the broker, are read and rebuilt.
 */
import { randomUUID } from 'node:crypto';

import rhea from 'rhea';

const { types } = rhea;

export const MAX_MESSAGE_BYTES = 256 * 1024;
export const BATCH_FORMAT = 0x80013700;

const HEADER = 0x70;
const DELIVERY_ANNOTATIONS = 0x71;
const MESSAGE_ANNOTATIONS = 0x72;
const PROPERTIES = 0x73;
const APPLICATION_PROPERTIES = 0x74;
const DATA = 0x75;
const FOOTER = 0x78;

const SCHEDULED_TIME = 'x-opt-scheduled-enqueue-time';
const STATE_CODES = { active: 0, deferred: 1, scheduled: 2 };
const LOCK_TOKEN = 'x-opt-lock-token';
const DEAD_LETTER_SOURCE = 'x-opt-deadletter-source';
/** Annotations that only the broker writes; a sender's are dropped. */
const OWN_ANNOTATIONS = new Set([
  'x-opt-enqueued-time', 'x-opt-sequence-number', 'x-opt-enqueue-sequence-number', 'x-opt-locked-until',
  'x-opt-message-state', SCHEDULED_TIME, LOCK_TOKEN, DEAD_LETTER_SOURCE,
]);
const NULL = 0x40;
const EMPTY_LIST = 0x45;
const LIST = 0xd0;
const MAP = 0xd1;

/**
 * Messages wait as text with a character for each byte: what is on JavaScript's own heap goes back to the operating system when
 * it is gone, and buffers, which are on that of the C library, hardly ever do.
 */
export const toText = (bytes) => bytes.latin1Slice();
export const toBytes = (text) => Buffer.from(text, 'latin1');

/** What was received is no AMQP message. */
export class MalformedMessage extends Error {}

/** The messages in one transfer: one, or each data section of a batch. */
export function parseTransfer(bytes, format) {
  if (format !== BATCH_FORMAT) return [parseMessage(bytes)];
  return sectionsOf(bytes)
    .filter((section) => section.code === DATA)
    .map((section) => parseMessage(decode(bytes.subarray(section.value, section.end))));
}

export function parseMessage(bytes) {
  const message = {
    durable: false, priority: 4, ttl: null, id: null, scheduledFor: null, deliveryAnnotations: [], annotations: [], bare: null,
  };
  let properties = null;
  const rest = [];
  for (const { code, start, value, end } of sectionsOf(bytes)) {
    const content = bytes.subarray(value, end);
    if (code === HEADER) readHeader(message, decode(content));
    else if (code === DELIVERY_ANNOTATIONS) message.deliveryAnnotations = sendersPairs(content);
    else if (code === MESSAGE_ANNOTATIONS) readAnnotations(message, content);
    else if (code === PROPERTIES) {
      message.id = readMessageId(content);
      properties = message.id === null ? withNewId(content) : bytes.subarray(start, end);
    } else {
      // Read when the message is dead-lettered, perhaps by the timer, where nobody is there to be refused.
      if (code === APPLICATION_PROPERTIES) pairsOf(content);
      rest.push(bytes.subarray(start, end));
    }
  }
  message.bare = toText(Buffer.concat([properties ?? withNewId(Buffer.from([EMPTY_LIST])), ...rest]));
  return message;
}

function readHeader(message, [durable, priority, ttl]) {
  message.durable = durable ?? false;
  message.priority = priority ?? 4;
  message.ttl = ttl ?? null;
}

function readAnnotations(message, content) {
  for (const { key, bytes, valueStart } of pairsOf(content)) {
    if (key === SCHEDULED_TIME) message.scheduledFor = timeOf(decode(bytes.subarray(valueStart)));
  }
  message.annotations = sendersPairs(content);
}

/** A timestamp, or a number like it, as milliseconds; null when there is none. */
function timeOf(value) {
  const time = value instanceof Date ? value.getTime() : value;
  if (time !== null && !Number.isSafeInteger(time)) throw new MalformedMessage(`${SCHEDULED_TIME} is no time.`);
  return time;
}

/** What the sender annotated, without what only the broker may say. */
function sendersPairs(content) {
  return pairsOf(content).filter(({ key }) => !OWN_ANNOTATIONS.has(key)).map(({ bytes }) => Buffer.from(bytes));
}

/** The message id as a string that is equal only for equal ids; null when there is none. */
function readMessageId(content) {
  const { items } = compound(content);
  if (items === content.length || content[items] === NULL) return null;
  const id = decode(content.subarray(items));
  return Buffer.isBuffer(id) ? `bytes:${id.toString('hex')}` : `${typeof id}:${id}`;
}

/** The properties section with an id in its first field, which is empty: the JavaScript SDK cannot settle what has none. */
function withNewId(content) {
  const { count, items } = compound(content);
  const fields = Buffer.concat([string(randomUUID().replaceAll('-', '')), content.subarray(items + 1)]);
  return compoundSection(PROPERTIES, LIST, Math.max(count, 1), fields);
}

/** The message as a receiver gets it. `lock` is null when it is not locked for this receiver. */
export function toWire(message, lock = null) {
  const onDelivery = [...message.deliveryAnnotations];
  const annotations = [
    annotation('x-opt-sequence-number', long(message.sequence)),
    annotation('x-opt-enqueue-sequence-number', long(message.enqueuedSequence ?? message.sequence)),
    annotation('x-opt-enqueued-time', timestamp(message.enqueuedAt)),
    annotation('x-opt-message-state', int(STATE_CODES[message.state])),
    ...message.annotations,
  ];
  if (lock !== null) {
    onDelivery.push(annotation(LOCK_TOKEN, uuid(lock.token)));
    annotations.push(annotation('x-opt-locked-until', timestamp(lock.until)));
  }
  if (message.scheduledFor !== null) annotations.push(annotation(SCHEDULED_TIME, timestamp(message.scheduledFor)));
  return Buffer.concat([
    headerSection(message),
    mapSection(DELIVERY_ANNOTATIONS, onDelivery),
    mapSection(MESSAGE_ANNOTATIONS, annotations),
    toBytes(message.bare),
  ]);
}

/** The bare message, as text, with these values, by name, among its application properties. */
export function withProperties(text, properties) {
  const added = Object.entries(properties);
  if (added.length === 0) return text;
  const bare = toBytes(text);
  const before = [];
  const after = [];
  const pairs = [];
  for (const { code, start, value, end } of sectionsOf(bare)) {
    if (code === PROPERTIES) before.push(bare.subarray(start, end));
    else if (code === APPLICATION_PROPERTIES) pairs.push(...otherPairs(bare.subarray(value, end), properties));
    else after.push(bare.subarray(start, end));
  }
  for (const [name, value] of added) pairs.push(Buffer.concat([string(name), encode(value)]));
  return toText(Buffer.concat([...before, mapSection(APPLICATION_PROPERTIES, pairs), ...after]));
}

function otherPairs(content, properties) {
  return pairsOf(content).filter(({ key }) => !Object.hasOwn(properties, key)).map(({ bytes }) => bytes);
}

/** The annotations with the queue whose dead letter the message was; once there they stay as they are. */
export function withSource(annotations, queue) {
  return [...annotations, annotation(DEAD_LETTER_SOURCE, string(queue))];
}

/** The 16 bytes of a lock token. */
export function uuidFromToken(token) {
  return Buffer.from(token.replaceAll('-', ''), 'hex');
}

/** The delivery tag that carries a lock token: its UUID in Microsoft's little-endian order. */
export function tagFromToken(token) {
  const bytes = uuidFromToken(token);
  bytes.subarray(0, 4).reverse();
  bytes.subarray(4, 6).reverse();
  bytes.subarray(6, 8).reverse();
  return bytes;
}

// --- writing

function headerSection({ durable, priority, ttl, deliveryCount }) {
  const fields = Buffer.concat([
    Buffer.from([durable ? 0x41 : 0x42, 0x50, priority]),
    ttl === null ? Buffer.from([NULL]) : uint(Math.min(ttl, 0xffffffff)),
    Buffer.from([deliveryCount === 0 ? 0x41 : 0x42]),
    uint(deliveryCount),
  ]);
  return Buffer.concat([Buffer.from([0x00, 0x53, HEADER, 0xc0, fields.length + 1, 5]), fields]);
}

/** A section with a map of already encoded key-value pairs; nothing when there is none. */
function mapSection(code, pairs) {
  return pairs.length === 0 ? Buffer.alloc(0) : compoundSection(code, MAP, 2 * pairs.length, Buffer.concat(pairs));
}

/** A section with a list or a map of already encoded items. */
function compoundSection(code, type, count, items) {
  const head = Buffer.alloc(12);
  head.set([0x00, 0x53, code, type]);
  head.writeUInt32BE(items.length + 4, 4);
  head.writeUInt32BE(count, 8);
  return Buffer.concat([head, items]);
}

function annotation(name, value) {
  return Buffer.concat([Buffer.from([0xa3, name.length]), Buffer.from(name, 'ascii'), value]);
}

function string(text) {
  const bytes = Buffer.from(text, 'utf8');
  const head = Buffer.alloc(5, 0xb1);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

function uint(value) {
  const bytes = Buffer.alloc(5, 0x70);
  bytes.writeUInt32BE(value, 1);
  return bytes;
}

function int(value) {
  const bytes = Buffer.alloc(5, 0x71);
  bytes.writeInt32BE(value, 1);
  return bytes;
}

function eight(code, value) {
  const bytes = Buffer.alloc(9, code);
  bytes.writeBigInt64BE(BigInt(Math.trunc(value)), 1);
  return bytes;
}

const uuid = (token) => Buffer.concat([Buffer.from([0x98]), uuidFromToken(token)]);
const long = (value) => eight(0x81, value);
const timestamp = (value) => eight(0x83, value);

/** Encodes a value: one of rhea's typed values as what it is, another as what rhea takes it for. */
function encode(value) {
  const writer = new types.Writer();
  writer.write(types.wrap(value));
  return writer.toBuffer();
}

// --- reading

/** Decodes one AMQP value. */
function decode(bytes) {
  return types.unwrap(new types.Reader(bytes).read());
}

/** The sections of an encoded message: descriptor code, where the section starts, where its value starts, where it ends. */
function sectionsOf(bytes) {
  const found = [];
  for (let start = 0; start < bytes.length;) {
    const { code, value } = descriptorAt(bytes, start);
    const end = skip(bytes, value);
    if (!(end <= bytes.length)) throw new MalformedMessage('A section is cut short.');
    found.push({ code, start, value, end });
    start = end;
  }
  return found;
}

function descriptorAt(bytes, start) {
  const long = bytes[start + 1] === 0x80;
  if (bytes[start] !== 0x00 || !(long || bytes[start + 1] === 0x53)) throw new MalformedMessage('A section has no descriptor.');
  const code = long ? bytes[start + 9] : bytes[start + 2];
  if (!(code >= HEADER && code <= FOOTER)) throw new MalformedMessage(`Unknown section ${code}.`);
  return { code, value: start + (long ? 10 : 3) };
}

/** The key-value pairs of an encoded map, each as its bytes. */
function pairsOf(content) {
  const { count, items } = compound(content);
  const pairs = [];
  let start = items;
  for (let i = 0; i < count; i += 2) {
    const value = skip(content, start);
    const end = skip(content, value);
    if (!(end <= content.length)) throw new MalformedMessage('A map is cut short.');
    pairs.push({
      key: String(decode(content.subarray(start, value))),
      bytes: content.subarray(start, end),
      valueStart: value - start,
    });
    start = end;
  }
  return pairs;
}

/** Number of items of an encoded list or map, and where the first starts. */
function compound(content) {
  const width = content[0] >> 4;
  if (width === 0xc) return { count: content[2], items: 3 };
  if (width === 0xd) return { count: content.readUInt32BE(5), items: 9 };
  return { count: 0, items: content.length };
}

/** Where the value that starts at `at` ends; perhaps beyond the end of the bytes, or NaN, when it is cut short. */
function skip(bytes, at) {
  const code = bytes[at];
  if (code === 0x00) return skip(bytes, skip(bytes, at + 1));
  const fixed = [undefined, undefined, undefined, undefined, 0, 1, 2, 4, 8, 16][code >> 4];
  if (fixed !== undefined) return at + 1 + fixed;
  if ([0xa, 0xc, 0xe].includes(code >> 4)) return at + 2 + bytes[at + 1];
  if ([0xb, 0xd, 0xf].includes(code >> 4) && at + 5 <= bytes.length) return at + 5 + bytes.readUInt32BE(at + 1);
  throw new MalformedMessage('A value has an unknown type or is cut short.');
}
