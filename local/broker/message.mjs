/**
 * AMQP messages as bytes. What the sender wrote (properties, application properties, body) is kept as it came, so that no
 * AMQP type changes on the way; only the header and the annotations, which belong to the broker, are read and rebuilt.
 */
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
/** Annotations that only the broker writes; a sender's are dropped. */
const OWN_ANNOTATIONS = new Set([
  'x-opt-enqueued-time', 'x-opt-sequence-number', 'x-opt-enqueue-sequence-number', 'x-opt-locked-until',
  'x-opt-message-state', SCHEDULED_TIME,
]);

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
  const message = { durable: false, priority: 4, ttl: null, id: null, scheduledFor: null, annotations: [], bare: null };
  const bare = [];
  for (const { code, start, value, end } of sectionsOf(bytes)) {
    const content = bytes.subarray(value, end);
    if (code === HEADER) readHeader(message, decode(content));
    else if (code === MESSAGE_ANNOTATIONS) readAnnotations(message, content);
    else if (code !== DELIVERY_ANNOTATIONS) bare.push(bytes.subarray(start, end));
    if (code === PROPERTIES) message.id = readMessageId(content);
  }
  // A copy: the slices would keep the whole socket buffer alive.
  message.bare = Buffer.concat(bare);
  return message;
}

function readHeader(message, [durable, priority, ttl]) {
  message.durable = durable ?? false;
  message.priority = priority ?? 4;
  message.ttl = ttl ?? null;
}

function readAnnotations(message, content) {
  for (const { key, bytes, valueStart } of pairsOf(content)) {
    if (key === SCHEDULED_TIME) message.scheduledFor = Number(decode(bytes.subarray(valueStart)));
    if (!OWN_ANNOTATIONS.has(key)) message.annotations.push(Buffer.from(bytes));
  }
}

/** The message id as a string that is equal only for equal ids; null when there is none. */
function readMessageId(content) {
  const { items } = compound(content);
  if (items === content.length || content[items] === 0x40) return null;
  const id = decode(content.subarray(items));
  return Buffer.isBuffer(id) ? `bytes:${id.toString('hex')}` : `${typeof id}:${id}`;
}

/** The message as a receiver gets it. `lockedUntil` is null when it is not locked for this receiver. */
export function toWire(message, lockedUntil = null) {
  const annotations = [
    annotation('x-opt-sequence-number', long(message.sequence)),
    annotation('x-opt-enqueue-sequence-number', long(message.enqueuedSequence ?? message.sequence)),
    annotation('x-opt-enqueued-time', timestamp(message.enqueuedAt)),
    annotation('x-opt-message-state', int(STATE_CODES[message.state])),
    ...message.annotations,
  ];
  if (lockedUntil !== null) annotations.push(annotation('x-opt-locked-until', timestamp(lockedUntil)));
  if (message.scheduledFor !== null) annotations.push(annotation(SCHEDULED_TIME, timestamp(message.scheduledFor)));
  return Buffer.concat([headerSection(message), mapSection(MESSAGE_ANNOTATIONS, annotations), message.bare]);
}

/** The bare message with these strings among its application properties; null values are left out. */
export function withProperties(bare, properties) {
  const added = Object.entries(properties).filter(([, value]) => value !== null && value !== undefined);
  const names = new Set(added.map(([name]) => name));
  const before = [];
  const after = [];
  const pairs = [];
  for (const { code, start, value, end } of sectionsOf(bare)) {
    if (code === PROPERTIES) before.push(bare.subarray(start, end));
    else if (code === APPLICATION_PROPERTIES) pairs.push(...otherPairs(bare.subarray(value, end), names));
    else after.push(bare.subarray(start, end));
  }
  for (const [name, value] of added) pairs.push(Buffer.concat([string(name), string(String(value))]));
  if (pairs.length > 0) before.push(mapSection(APPLICATION_PROPERTIES, pairs));
  return Buffer.concat([...before, ...after]);
}

function otherPairs(content, names) {
  return pairsOf(content).filter(({ key }) => !names.has(key)).map(({ bytes }) => bytes);
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
    ttl === null ? Buffer.from([0x40]) : uint(Math.min(ttl, 0xffffffff)),
    Buffer.from([deliveryCount === 0 ? 0x41 : 0x42]),
    uint(deliveryCount),
  ]);
  return Buffer.concat([Buffer.from([0x00, 0x53, HEADER, 0xc0, fields.length + 1, 5]), fields]);
}

/** A section with a map of already encoded key-value pairs. */
function mapSection(code, pairs) {
  const length = pairs.reduce((sum, pair) => sum + pair.length, 0);
  const head = Buffer.alloc(12);
  head.set([0x00, 0x53, code, 0xd1]);
  head.writeUInt32BE(length + 4, 4);
  head.writeUInt32BE(2 * pairs.length, 8);
  return Buffer.concat([head, ...pairs]);
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

const long = (value) => eight(0x81, value);
const timestamp = (value) => eight(0x83, value);

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
