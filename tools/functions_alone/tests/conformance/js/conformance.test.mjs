// What of the suite differs between the SDKs, with Azure's SDK for JavaScript. test_javascript.py starts it.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, afterEach, before, test } from 'node:test';

import { ServiceBusClient } from '@azure/service-bus';
import Long from 'long';

const { SERVICEBUS_CONNECTION: connection, SERVICEBUS_QUEUE: name } = process.env;
const WAIT = { maxWaitTimeInMs: 60_000 };
const NO_RETRIES = { retryOptions: { maxRetries: 0 } };

let client, sender, receiver, deadLetters;

before(() => {
  client = new ServiceBusClient(connection, NO_RETRIES);
  sender = client.createSender(name);
  receiver = client.createReceiver(name);
  deadLetters = client.createReceiver(name, { subQueueType: 'deadLetter' });
});

afterEach(async () => {
  for (const reader of [receiver, deadLetters]) {
    assert.deepEqual(await reader.peekMessages(1, { fromSequenceNumber: Long.ONE }), [], 'a test left the queue empty');
  }
});

after(() => client.close());

async function receive(count = 1, from = receiver) {
  const messages = [];
  while (messages.length < count) {
    const more = await from.receiveMessages(count - messages.length, WAIT);
    assert.ok(more.length > 0, 'messages came');
    messages.push(...more);
  }
  return messages;
}

async function complete(...messages) {
  for (const message of messages) await receiver.completeMessage(message);
}

test('a message keeps what the sender set', async () => {
  const messageId = randomUUID();
  await sender.sendMessages({
    body: { text: 'ü', list: [1, 2] }, messageId, correlationId: 'order-1', subject: 'Allocate', replyTo: 'replies',
    contentType: 'application/json', timeToLive: 60_000, applicationProperties: { text: 'ä', number: 7, flag: true },
  });
  const [message] = await receive();
  await complete(message);
  assert.deepEqual(message.body, { text: 'ü', list: [1, 2] });
  const { correlationId, subject, replyTo, contentType, timeToLive } = message;
  assert.deepEqual([message.messageId, correlationId, subject, replyTo], [messageId, 'order-1', 'Allocate', 'replies']);
  assert.deepEqual([contentType, timeToLive], ['application/json', 60_000]);
  assert.deepEqual(message.applicationProperties, { text: 'ä', number: 7, flag: true });
  assert.equal(message.expiresAtUtc - message.enqueuedTimeUtc, 60_000);
});

test('a message without an id is given one, and can be abandoned and completed', async () => {
  await sender.sendMessages({ body: 'no id' });
  const [first] = await receive();
  await receiver.abandonMessage(first);
  const [second] = await receive();
  await complete(second);
  assert.ok(second.messageId);
  assert.equal(second.messageId, first.messageId);
  assert.deepEqual([first.deliveryCount, second.deliveryCount], [0, 1]);
});

test('a batch is taken apart', async () => {
  const batch = await sender.createMessageBatch();
  for (let i = 0; i < 50; i++) assert.ok(batch.tryAddMessage({ body: `b${i}`, correlationId: `c${i}` }));
  await sender.sendMessages(batch);
  const messages = await receive(50);
  await complete(...messages);
  const expected = Array.from({ length: 50 }, (_, i) => [`b${i}`, `c${i}`]);
  assert.deepEqual(messages.map(({ body, correlationId }) => [body, correlationId]), expected);
});

test('a message that is too big is refused', async () => {
  const { maxSizeInBytes } = await sender.createMessageBatch();
  await assert.rejects(sender.sendMessages({ body: 'x'.repeat(maxSizeInBytes + 1000) }), { code: 'MessageSizeExceeded' });
});

test('properties are changed when a message is abandoned', async () => {
  await sender.sendMessages({ body: 'abandoned', applicationProperties: { kept: 'yes', tries: 0 } });
  const [first] = await receive();
  await receiver.abandonMessage(first, { tries: 1, by: 'me' });
  const [second] = await receive();
  await complete(second);
  assert.deepEqual(second.applicationProperties, { kept: 'yes', tries: 1, by: 'me' });
});

test('properties are changed when a message is deferred', async () => {
  await sender.sendMessages({ body: 'deferred', applicationProperties: { kept: 'yes' } });
  const [message] = await receive();
  await receiver.deferMessage(message, { why: 'later' });
  const [deferred] = await receiver.receiveDeferredMessages(message.sequenceNumber);
  assert.equal(deferred.state, 'deferred');
  assert.deepEqual(deferred.applicationProperties, { kept: 'yes', why: 'later' });
  await receiver.abandonMessage(deferred, { why: 'later still' });
  const [again] = await receiver.receiveDeferredMessages(message.sequenceNumber);
  await complete(again);
  assert.deepEqual(again.applicationProperties, { kept: 'yes', why: 'later still' });
});

test('a dead letter has its reason and the changed properties', async () => {
  await sender.sendMessages({ body: 'dead', applicationProperties: { kept: 'yes' } });
  const [message] = await receive();
  const why = { deadLetterReason: 'Malformed', deadLetterErrorDescription: 'no order id', by: 'me' };
  await receiver.deadLetterMessage(message, why);
  const [dead] = await receive(1, deadLetters);
  await deadLetters.completeMessage(dead);
  assert.deepEqual([dead.deadLetterReason, dead.deadLetterErrorDescription], ['Malformed', 'no order id']);
  assert.equal(dead.applicationProperties.kept, 'yes');
  assert.equal(dead.applicationProperties.by, 'me');
});

test('scheduled messages are seen, cancelled, or come at their time', async () => {
  const soon = new Date(Date.now() + 500);
  const [far] = await sender.scheduleMessages({ body: 'far' }, new Date(Date.now() + 600_000));
  const [near] = await sender.scheduleMessages({ body: 'near' }, soon);
  const seen = await receiver.peekMessages(2, { fromSequenceNumber: far });
  assert.deepEqual(seen.map(({ body, state }) => [body, state]), [['far', 'scheduled'], ['near', 'scheduled']]);
  assert.deepEqual(seen.map(({ sequenceNumber }) => String(sequenceNumber)), [far, near].map(String));
  await sender.cancelScheduledMessages(far);
  const [message] = await receive();
  await complete(message);
  assert.equal(message.body, 'near');
  assert.ok(Date.now() >= soon.getTime() - 50);
});

test('a renewed lock ends later', async () => {
  await sender.sendMessages({ body: 'held' });
  const [message] = await receive();
  const before = message.lockedUntilUtc;
  await new Promise((resolve) => setTimeout(resolve, 20));
  const until = await receiver.renewMessageLock(message);
  await complete(message);
  assert.ok(until > before);
});

test('many locks are renewed at once', async () => {
  await sender.sendMessages(Array.from({ length: 20 }, (_, i) => ({ body: i })));
  const messages = await receive(20);
  await Promise.all(messages.map((message) => receiver.renewMessageLock(message)));
  await Promise.all(messages.map((message) => receiver.completeMessage(message)));
});

test('receive-and-delete removes on delivery', async () => {
  await sender.sendMessages([{ body: 'r1' }, { body: 'r2' }]);
  const deleting = client.createReceiver(name, { receiveMode: 'receiveAndDelete' });
  const messages = await receive(2, deleting);
  await deleting.close();
  assert.deepEqual(messages.map(({ body }) => body), ['r1', 'r2']);
});

test('receiving ends after the longest wait', async () => {
  assert.deepEqual(await receiver.receiveMessages(1, { maxWaitTimeInMs: 200 }), []);
});

test('a subscription completes each message once', async () => {
  const bodies = Array.from({ length: 100 }, (_, i) => `s${i}`);
  await sender.sendMessages(bodies.map((body) => ({ body })));
  const streaming = client.createReceiver(name);
  const seen = await new Promise((resolve, reject) => {
    const found = [];
    const processMessage = async ({ body }) => {
      if (found.push(body) === bodies.length) resolve(found);
    };
    const processError = async ({ error }) => reject(error);
    streaming.subscribe({ processMessage, processError }, { maxConcurrentCalls: 10 });
  });
  await streaming.close(); // waits for what is being settled
  assert.deepEqual(seen.sort(), bodies.sort());
});

test('a session receiver is refused on a queue without sessions', async () => {
  await assert.rejects(client.acceptSession(name, 's1'), /session/);
  await assert.rejects(client.acceptNextSession(name), /session/);
});

test('an unknown queue is an error', async () => {
  const nowhere = client.createSender('no-such-queue');
  await assert.rejects(nowhere.sendMessages({ body: 'x' }), { code: 'MessagingEntityNotFound' });
  await nowhere.close();
});
