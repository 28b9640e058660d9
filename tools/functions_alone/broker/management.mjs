/** The operations of `<queue>/$management`: each takes the queue, the request's body and the time, and gives the reply. */
import rhea from 'rhea';

import { DEAD_TWICE } from './errors.mjs';
import { MAX_MESSAGE_BYTES, parseMessage, toWire, uuidFromToken } from './message.mjs';

const { types } = rhea;
const TIMESTAMP_CODE = 0x83;
const LONG_CODE = 0x81;
const PEEK_LIMIT_BYTES = 1024 * 1024;
const DISPOSITIONS = { completed: 'completed', abandoned: 'abandoned', defered: 'deferred', suspended: 'deadLettered' };

const OPERATIONS = {
  'com.microsoft:renew-lock': renewLock,
  'com.microsoft:peek-message': peekMessage,
  'com.microsoft:schedule-message': scheduleMessage,
  'com.microsoft:cancel-scheduled-message': cancelScheduledMessage,
  'com.microsoft:receive-by-sequence-number': receiveBySequenceNumber,
  'com.microsoft:update-disposition': updateDisposition,
};

/** The reply to one decoded request message. */
export function answer(queue, request, now) {
  const name = request.application_properties?.operation;
  const operation = OPERATIONS[name];
  if (operation === undefined) {
    return refused(501, 'amqp:not-implemented', `This broker does not have the operation ${name}.`);
  }
  try {
    return operation(queue, request.body, now);
  } catch (error) {
    return refused(400, 'com.microsoft:argument-error', `${name}: ${error.message}`);
  }
}

/** A reply as an AMQP message, except for its correlation id. */
function done(body, status = 200) {
  return { application_properties: { statusCode: types.wrap_int(status), statusDescription: 'OK' }, body };
}

function refused(status, condition, description) {
  return {
    application_properties: {
      statusCode: types.wrap_int(status),
      statusDescription: description,
      errorCondition: types.wrap_symbol(condition),
    },
    body: {},
  };
}

function lockLost() {
  return refused(410, 'com.microsoft:message-lock-lost', 'The lock supplied is invalid: it expired or was settled before');
}

function renewLock(queue, body, now) {
  const ends = queue.renew(body['lock-tokens'].map(tokenFromUuid), now);
  return ends === null ? lockLost() : done({ expirations: types.wrap_array(ends, TIMESTAMP_CODE) });
}

function peekMessage(queue, body) {
  const messages = [];
  let bytes = 0;
  for (const message of queue.peek(body['from-sequence-number'], body['message-count'])) {
    const encoded = toWire(message);
    bytes += encoded.length;
    if (messages.length > 0 && bytes > PEEK_LIMIT_BYTES) break;
    messages.push({ message: encoded });
  }
  return messages.length === 0 ? done({}, 204) : done({ messages });
}

function scheduleMessage(queue, body, now) {
  const encoded = body.messages.map((entry) => entry.message);
  if (encoded.some((bytes) => bytes.length > MAX_MESSAGE_BYTES)) {
    return refused(400, 'amqp:link:message-size-exceeded', `A message may have at most ${MAX_MESSAGE_BYTES} bytes`);
  }
  const sequences = encoded.map(parseMessage).map((message) => queue.put(message, now));
  return done({ 'sequence-numbers': types.wrap_array(sequences, LONG_CODE) });
}

function cancelScheduledMessage(queue, body) {
  if (queue.cancelScheduled(body['sequence-numbers'])) return done({});
  return refused(404, 'com.microsoft:message-not-found', 'A message with this sequence number is not scheduled');
}

function receiveBySequenceNumber(queue, body, now) {
  const remove = body['receiver-settle-mode'] === 0;
  const messages = queue.receiveDeferred(body['sequence-numbers'], now, { remove });
  if (messages === null) {
    return refused(404, 'com.microsoft:message-not-found', 'A message with this sequence number is not deferred, or locked');
  }
  return done({ messages: messages.map(deferredEntry) });
}

function deferredEntry(message) {
  if (message.lock === null) return { message: toWire(message) };
  return { message: toWire(message, message.lock), 'lock-token': types.wrap_uuid(uuidFromToken(message.lock.token)) };
}

function updateDisposition(queue, body, now) {
  const outcome = DISPOSITIONS[body['disposition-status']];
  if (outcome === undefined) throw new Error(`disposition-status ${body['disposition-status']} is unknown`);
  if (outcome === 'deadLettered' && queue.deadLetters === null) {
    return refused(400, DEAD_TWICE.condition, DEAD_TWICE.description);
  }
  for (const token of body['lock-tokens'].map(tokenFromUuid)) {
    const lock = queue.settle(token, outcome, now, propertiesIn(body));
    if (lock === null) return lockLost();
    lock.holder?.lockLost(lock);
  }
  return done({});
}

function propertiesIn(body) {
  const properties = {
    ...body['properties-to-modify'],
    DeadLetterReason: body['deadletter-reason'],
    DeadLetterErrorDescription: body['deadletter-description'],
  };
  return Object.fromEntries(Object.entries(properties).filter(([, value]) => value !== null && value !== undefined));
}

/** Lock tokens are UUIDs: text in the queue, 16 bytes here. */
function tokenFromUuid(bytes) {
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
