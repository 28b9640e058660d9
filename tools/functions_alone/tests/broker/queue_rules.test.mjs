// The queue's rules at exact times and in numbers that a test with a real clock cannot have, and what is kept of it on disk.
// Run by test_broker_queue_rules.py.
import assert from 'node:assert/strict';
import fs, { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { Broker } from '../../broker/broker.mjs';
import { Journal } from '../../broker/journal.mjs';
import { answer } from '../../broker/management.mjs';
import { MalformedMessage, parseMessage, uuidFromToken } from '../../broker/message.mjs';
import { Queue } from '../../broker/queue.mjs';
import { LinkReceiver } from '../../broker/receiver.mjs';
import { Deliveries } from '../../broker/session.mjs';

const RULES = { lockDuration: 100, maxDeliveryCount: 3, timeToLive: null, deadLetterExpired: false, duplicateWindow: null };

function makeQueue(rules = {}) {
  return new Queue('q', { ...RULES, ...rules }, new Queue('q/$DeadLetterQueue', RULES));
}

function makeMessage(fields = {}) {
  return {
    durable: false, priority: 4, ttl: null, id: null, scheduledFor: null, deliveryAnnotations: [], annotations: [],
    bare: '', ...fields,
  };
}

test('a lock holds until its last millisecond and is lost at its end', () => {
  const queue = makeQueue();
  queue.put(makeMessage(), 0);
  const { lock } = queue.lockNext(0, 'holder');
  assert.equal(queue.nextDue(), 100);
  assert.deepEqual(queue.tick(99), []);
  assert.equal(queue.lockNext(99), null);
  assert.equal(queue.settle(lock.token, 'completed', 100), null);
  assert.deepEqual(queue.tick(100), [lock]);
  assert.equal(queue.lockNext(100).deliveryCount, 1);
});

test('a renewed lock is looked at again only at its new end', () => {
  const queue = makeQueue();
  queue.put(makeMessage(), 0);
  const { lock } = queue.lockNext(0);
  assert.deepEqual(queue.renew([lock.token], 60), [160]);
  assert.deepEqual(queue.tick(100), []);
  assert.equal(queue.nextDue(), 160);
  assert.equal(queue.tick(160).length, 1);
});

test('renewing several locks of which one is lost renews none', () => {
  const queue = makeQueue();
  queue.put(makeMessage(), 0);
  const { lock } = queue.lockNext(0);
  assert.equal(queue.renew([lock.token, 'unknown'], 50), null);
  assert.equal(queue.tick(100).length, 1);
});

test('a message that expires in the hand is dropped when it is given back', () => {
  const queue = makeQueue({ timeToLive: 50 });
  queue.put(makeMessage(), 0);
  const { lock } = queue.lockNext(40);
  queue.tick(60);
  assert.equal(queue.size, 1);
  assert.ok(queue.settle(lock.token, 'abandoned', 70));
  assert.equal(queue.size, 0);
  assert.equal(queue.deadLetters.size, 0);
});

test('a scheduled message starts to live at its time', () => {
  const queue = makeQueue({ timeToLive: 50 });
  queue.put(makeMessage({ scheduledFor: 1000 }), 0);
  assert.equal(queue.hasReady(999), false);
  queue.tick(1000);
  assert.equal(queue.hasReady(1049), true);
  assert.equal(queue.hasReady(1050), false);
});

test('a settlement with a value that cannot be encoded is refused and changes nothing', () => {
  const queue = makeQueue();
  queue.put(makeMessage(), 0);
  const { lock } = queue.lockNext(0);
  const settle = (value) => answer(queue, {
    application_properties: { operation: 'com.microsoft:update-disposition' },
    body: {
      'disposition-status': 'abandoned', 'lock-tokens': [uuidFromToken(lock.token)], 'properties-to-modify': { value },
    },
  }, 10).application_properties.statusCode.value;
  assert.equal(settle(1e20), 400);
  assert.equal(queue.counts().locked, 1);
  assert.equal(settle(1), 200);
  assert.equal(queue.lockNext(20).deliveryCount, 1);
});

test('released deliveries never dead-letter, failed ones do at the limit', () => {
  const queue = makeQueue();
  queue.put(makeMessage(), 0);
  for (let i = 0; i < 10; i += 1) queue.settle(queue.lockNext(i).lock.token, 'released', i);
  for (let i = 0; i < 3; i += 1) queue.settle(queue.lockNext(i).lock.token, 'abandoned', i);
  assert.deepEqual([queue.size, queue.deadLetters.size], [0, 1]);
  assert.equal(queue.deadLetters.lockNext(5).deliveryCount, 3);
});

test('a forwarded dead letter is delivered from the beginning, and is named after the first queue alone', () => {
  const [queue, target] = [makeQueue(), new Queue('t', RULES, new Queue('t/$DeadLetterQueue', RULES))];
  queue.forwardDeadLetters(target);
  queue.put(makeMessage(), 0);
  for (let i = 0; i < 3; i += 1) queue.settle(queue.lockNext(i).lock.token, 'abandoned', i);
  assert.deepEqual([queue.size, target.size, queue.counts().deadLettered], [0, 1, 0]);
  const [forwarded] = target.peek(0, 1);
  const source = forwarded.annotations.map((pair) => pair.toString('latin1')).filter((text) => text.includes('x-opt-deadletter-source'));
  assert.equal(source.length, 1);
  assert.ok(source[0].endsWith('q'));
  for (let i = 0; i < 3; i += 1) target.settle(target.lockNext(i).lock.token, 'abandoned', i);
  assert.deepEqual([target.size, target.deadLetters.size], [0, 1]);
  const [left] = target.deadLetters.peek(0, 1);
  assert.equal(left.annotations.length, forwarded.annotations.length);
});

test('a duplicate counts from the first message, whatever became of it, and not beyond the window', () => {
  const queue = makeQueue({ duplicateWindow: 100 });
  const first = queue.put(makeMessage({ id: 'a' }), 0);
  queue.removeNext(0);
  assert.equal(queue.put(makeMessage({ id: 'a' }), 99), first);
  assert.equal(queue.size, 0);
  assert.notEqual(queue.put(makeMessage({ id: 'a' }), 100), first);
});

test('ids that are older than the window are forgotten, also when one of them came again', () => {
  const queue = makeQueue({ duplicateWindow: 100 });
  for (let i = 0; i < 1000; i += 1) queue.put(makeMessage({ id: `m${i}` }), i);
  queue.put(makeMessage({ id: 'm899' }), 1000);
  for (let i = 1001; i < 1090; i += 1) queue.put(makeMessage({ id: `m${i}` }), i);
  const { seen } = queue.dump();
  assert.ok(seen.length < 115, `${seen.length} ids`);
  assert.deepEqual(seen.map(([, { at }]) => at).sort((a, b) => a - b), seen.map(([, { at }]) => at));
  assert.ok(queue.put(makeMessage({ id: 'm899' }), 1099) < 1002);
});

test('cancelling several of which one is not scheduled cancels none', () => {
  const queue = makeQueue();
  const scheduled = queue.put(makeMessage({ scheduledFor: 100 }), 0);
  const active = queue.put(makeMessage(), 0);
  assert.equal(queue.cancelScheduled([scheduled, active]), false);
  assert.equal(queue.size, 2);
});

test('order and expiry survive thousands of messages that come and go', () => {
  const queue = makeQueue({ timeToLive: 1_000_000, lockDuration: 10_000 });
  const kept = [];
  for (let i = 0; i < 20_000; i += 1) {
    queue.put(makeMessage(), i);
    const { lock, sequence } = queue.lockNext(i);
    if (i % 1000 === 0) kept.push({ token: lock.token, sequence });
    else queue.settle(lock.token, 'completed', i);
  }
  const lost = queue.tick(30_000);
  assert.deepEqual(lost.map(({ token }) => token), kept.map(({ token }) => token));
  assert.equal(queue.size, kept.length);
  for (const { sequence } of kept) assert.equal(queue.lockNext(30_000).sequence, sequence);
  queue.tick(40_000);
  assert.equal(queue.nextDue(), 1_000_000);
  queue.tick(1_019_000);
  assert.equal(queue.size, 0);
});

test('a message that expires before a living one does not take it along', () => {
  const queue = makeQueue();
  queue.put(makeMessage({ ttl: 20 }), 0);
  // As many as make the heap of ready messages drop its dead when one more dies.
  for (let i = 0; i < 1025; i += 1) queue.put(makeMessage({ ttl: 10 }), 0);
  const living = queue.put(makeMessage(), 0);
  queue.tick(10);
  assert.equal(queue.size, 2);
  assert.equal(queue.removeNext(20)?.sequence, living);
  queue.tick(20);
  assert.equal(queue.size, 0);
});

test('many messages that expire together leave clients their turns', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  const changes = [0];
  const journal = { added() {}, changed() { changes[0] += 1; }, flush: () => changes.unshift(0) };
  const broker = new Broker([['q', { ...RULES, timeToLive: 10 }]], journal);
  const queue = broker.find('q');
  for (let i = 0; i < 3500; i += 1) queue.put(makeMessage(), 0);
  broker.serve(queue);
  t.mock.timers.tick(10);
  t.mock.timers.tick(10);
  assert.equal(queue.size, 0);
  assert.deepEqual(changes, [0, 500, 1000, 1000, 1000]);
});

test('what is stored and restored goes on as before', () => {
  const before = makeQueue({ duplicateWindow: 1000 });
  const active = before.put(makeMessage({ id: 'a' }), 0);
  before.put(makeMessage({ scheduledFor: 500 }), 0);
  const { lock } = before.lockNext(0, 'holder');
  const after = makeQueue({ duplicateWindow: 1000 });
  after.restore(before.dump());
  assert.equal(after.put(makeMessage({ id: 'a' }), 50), active);
  assert.ok(after.settle(lock.token, 'abandoned', 50));
  assert.equal(after.lockNext(60).sequence, active);
  assert.equal(after.put(makeMessage(), 60), 3);
  after.tick(500);
  assert.equal(after.counts().active, 3);
});

test('to peek far into a queue looks at few of its messages', () => {
  const queue = makeQueue();
  const messages = Array.from({ length: 10_000 }, () => makeMessage());
  for (const message of messages) queue.put(message, 0);
  for (let i = 0; i < 2000; i += 1) queue.removeNext(0);
  let looks = 0;
  for (const message of messages) {
    const { sequence } = message;
    Object.defineProperty(message, 'sequence', { get: () => { looks += 1; return sequence; } });
  }
  const peeked = (from) => [...queue.peek(from, 2)].map((message) => messages.indexOf(message) + 1);
  assert.deepEqual([peeked(9990), peeked(1), peeked(10_000)], [[9990, 9991], [2001, 2002], [10_000]]);
  assert.ok(looks < 100, `${looks} looks`);
});

test('one delivery that is held does not keep those after it', () => {
  const deliveries = new Deliveries();
  const isSettled = ({ settled }) => settled;
  for (let id = 0; id < 200_000; id += 1) {
    deliveries.push({ id, settled: id > 0 });
    deliveries.pop_if(isSettled);
  }
  assert.ok(deliveries.available() > 60_000);
  assert.equal(deliveries.by_id(0).id, 0);
});

test('a link forgets the oldest of too many lost locks, and the bytes of all', () => {
  const sent = [];
  const send = () => {
    sent.push({ id: sent.length, settled: false, data: ['bytes'] });
    return sent.at(-1);
  };
  const link = new LinkReceiver({ snd_settle_mode: 0, session: { outgoing: { next_pending_delivery: Infinity } }, send });
  const queue = makeQueue();
  for (let i = 0; i < 10_002; i += 1) {
    queue.put(makeMessage(), i);
    link.deliver(queue.lockNext(i, link));
  }
  for (const lock of queue.tick(20_000)) lock.holder.lockLost(lock);
  assert.deepEqual(sent.filter(({ settled }) => settled).map(({ id }) => id), [0, 1]);
  assert.ok(sent.every(({ data }) => data.length === 0));
});

// --- messages

const SCHEDULED_TIME = 'x-opt-scheduled-enqueue-time';

/** An encoded message with this annotation, whose value is given as AMQP's bytes. */
function annotated(...value) {
  const pair = Buffer.concat([Buffer.from([0xa3, SCHEDULED_TIME.length]), Buffer.from(SCHEDULED_TIME), Buffer.from(value)]);
  return Buffer.concat([Buffer.from([0x00, 0x53, 0x72, 0xc1, pair.length + 1, 2]), pair]);
}

test('only a time is taken for the time that a message is scheduled for', () => {
  const timestamp = [0x83, 0, 0, 0, 0, 0, 0, 3, 0xe8];
  const long = [0x55, 7];
  const nothing = [0x40];
  const times = [timestamp, long, nothing].map((value) => parseMessage(annotated(...value)).scheduledFor);
  assert.deepEqual(times, [1000, 7, null]);
  const text = [0xa1, 1, 0x78];
  const uuid = [0x98, ...Buffer.alloc(16)];
  const beyond = [0x83, 0x7f, ...Buffer.alloc(7)];
  for (const value of [text, uuid, beyond]) assert.throws(() => parseMessage(annotated(...value)), MalformedMessage);
});

test('application properties that are cut short are refused when they come', () => {
  assert.throws(() => parseMessage(Buffer.from([0x00, 0x53, 0x74, 0xc1, 1, 2])), MalformedMessage);
});

test('deferred messages are had together or not at all, and one in the hand is not had again', () => {
  const queue = makeQueue();
  const numbers = [1, 2, 3].map(() => queue.put(makeMessage(), 0));
  for (const _ of numbers) queue.settle(queue.lockNext(0).lock.token, 'deferred', 0);
  const other = queue.put(makeMessage(), 0);
  assert.equal(queue.receiveDeferred([numbers[0], other], 1, { remove: false }), null);
  assert.equal(queue.receiveDeferred([numbers[0], 99], 1, { remove: true }), null);
  assert.equal(queue.receiveDeferred([numbers[0]], 1, { remove: false }).length, 1);
  assert.equal(queue.receiveDeferred([numbers[0], numbers[1]], 1, { remove: false }), null);
  assert.equal(queue.receiveDeferred([numbers[1], numbers[2]], 1, { remove: true }).length, 2);
  assert.deepEqual([queue.size, queue.counts().locked], [2, 1]);
});

test('a deferred message is not set aside for its tries, and dies when it has expired', () => {
  const queue = makeQueue({ timeToLive: 50 });
  const number = queue.put(makeMessage(), 0);
  queue.settle(queue.lockNext(0).lock.token, 'deferred', 0);
  for (let i = 0; i < 5; i += 1) {
    queue.settle(queue.receiveDeferred([number], i, { remove: false })[0].lock.token, 'abandoned', i);
  }
  assert.deepEqual([queue.size, queue.deadLetters.size], [1, 0]);
  const [held] = queue.receiveDeferred([number], 40, { remove: false });
  queue.settle(held.lock.token, 'deferred', 60);
  assert.equal(queue.size, 0);
});

test('of two times to live the shorter counts', () => {
  const lives = (own, ofQueue) => {
    const queue = makeQueue({ timeToLive: ofQueue });
    queue.put(makeMessage({ ttl: own }), 0);
    return queue.nextDue();
  };
  assert.deepEqual([lives(30, 50), lives(50, 30), lives(null, 50), lives(30, null)], [30, 30, 50, 30]);
  assert.equal(lives(null, null), Infinity);
});

test('a name is found in any case, and every dead letter is kept, also two of one id', () => {
  const rules = { ...RULES, maxDeliveryCount: 1, duplicateWindow: 1000 };
  const broker = new Broker([['Parcels', rules]], { added() {}, changed() {}, flush() {} });
  const [queue, dead] = [broker.find('PARCELS'), broker.find('parcels/$deadletterqueue')];
  for (const [put, dies] of [[0, 900], [1000, 1000]]) {
    queue.put(makeMessage({ id: 'a' }), put);
    queue.settle(queue.lockNext(dies).lock.token, 'abandoned', dies);
  }
  assert.deepEqual([queue.size, dead.size, broker.find('letters')], [0, 2, undefined]);
  assert.deepEqual(broker.counts(), { Parcels: { active: 0, locked: 0, scheduled: 0, deadLettered: 2 } });
});

test('a look shows as many messages as fit into an answer, and one that does not fit by itself', () => {
  const queue = makeQueue();
  for (let i = 0; i < 4; i += 1) queue.put(makeMessage({ bare: 'x'.repeat(400_000) }), 0);
  queue.put(makeMessage({ bare: 'x'.repeat(1_200_000) }), 0);
  const look = (from) => answer(queue, {
    application_properties: { operation: 'com.microsoft:peek-message' },
    body: { 'from-sequence-number': from, 'message-count': 10 },
  }, 0);
  assert.deepEqual([1, 3, 5].map((from) => look(from).body.messages.length), [2, 2, 1]);
  assert.equal(look(6).application_properties.statusCode.value, 204);
});

// --- the journal

/** Opens the queue that was kept in this folder, or a new one. */
function openQueue(folder, rules = {}, mostChanges = undefined) {
  const journal = new Journal(folder, mostChanges);
  const deadLetters = new Queue('q/$DeadLetterQueue', RULES, null, journal);
  const queue = new Queue('q', { ...RULES, ...rules }, deadLetters, journal);
  journal.open([queue, deadLetters]);
  return { queue, deadLetters, journal, file: path.join(folder, 'broker.journal') };
}

function withFolder(use) {
  const folder = mkdtempSync(path.join(tmpdir(), 'journal-'));
  try {
    use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('a queue comes back from its journal as it was, without an orderly end', () => withFolder((folder) => {
  const before = openQueue(folder, { duplicateWindow: 1000 });
  for (let i = 0; i < 6; i += 1) before.queue.put(makeMessage({ id: `m${i}`, bare: '\x00\x53\x77\x41' }), 0);
  const locks = Array.from({ length: 5 }, () => before.queue.lockNext(0).lock);
  before.journal.flush();
  const settle = (at, outcome, properties) => before.queue.settle(locks[at].token, outcome, 10, properties);
  settle(0, 'completed');
  settle(1, 'abandoned', { changed: 'yes' });
  settle(2, 'deferred');
  settle(3, 'deadLettered', { DeadLetterReason: 'Why' });
  before.queue.renew([locks[4].token], 20);
  before.journal.flush();
  const after = openQueue(folder, { duplicateWindow: 1000 });
  assert.deepEqual(contentOf(after), contentOf(before));
  // Once more, from the file that was written anew.
  assert.deepEqual(contentOf(openQueue(folder, { duplicateWindow: 1000 })), contentOf(before));
  assert.ok(after.queue.settle(locks[4].token, 'completed', 110));
}));

/** What must come back; who holds a lock does not. */
function contentOf({ queue, deadLetters }) {
  return [queue, deadLetters].map((stored) => {
    const { messages, ...rest } = stored.dump();
    return { ...rest, messages: messages.map(({ dueAt, lock, ...message }) => ({ ...message, until: lock?.until })) };
  });
}

test('a sequence number and an id are used once, also when the message came and went within one flush', () => withFolder((folder) => {
  const before = openQueue(folder, { duplicateWindow: 1000 });
  before.queue.put(makeMessage({ id: 'a' }), 0);
  before.queue.removeNext(0);
  before.journal.flush();
  const { queue } = openQueue(folder, { duplicateWindow: 1000 });
  assert.equal(queue.put(makeMessage({ id: 'a' }), 10), 1);
  assert.equal(queue.size, 0);
  assert.equal(queue.put(makeMessage({ id: 'b' }), 10), 2);
}));

test('wherever the last write was cut short, a message that moves is there, and whole, and the journal goes on', () => withFolder((folder) => {
  const first = openQueue(folder);
  first.queue.put(makeMessage({ bare: 'body' }), 0);
  const { lock } = first.queue.lockNext(0);
  first.journal.flush();
  const before = statSync(first.file).size;
  first.queue.settle(lock.token, 'deadLettered', 10);
  first.journal.flush();
  const all = readFileSync(first.file);
  for (let size = before; size <= all.length; size += 1) {
    writeFileSync(first.file, all.subarray(0, size));
    const { queue, deadLetters, journal } = openQueue(folder);
    const kept = [queue, deadLetters].flatMap((stored) => stored.dump().messages.map(({ bare }) => String(bare)));
    assert.ok(kept.length > 0 && kept.every((body) => body === 'body'), `${size}: ${kept}`);
    queue.put(makeMessage(), 20);
    journal.flush();
    const after = openQueue(folder);
    assert.equal(after.queue.size + after.deadLetters.size, kept.length + 1);
  }
}));

test('a damaged journal is refused with the place', () => withFolder((folder) => {
  const { queue, journal, file } = openQueue(folder);
  queue.put(makeMessage({ bare: 'a\nb' }), 0);
  journal.flush();
  const whole = readFileSync(file, 'utf8');
  const refused = (text, reason) => {
    writeFileSync(file, text);
    assert.throws(() => openQueue(folder), reason);
  };
  refused(whole.replace('"message":{', '"message":'), /broker\.journal cannot be read: after 3 records: .*JSON/);
  refused(whole.replace(/"bytes":\d+/, '"bytes":1') + whole, /after 4 records: .*JSON/);
  refused('{"format":"something"}\n', /it is no journal of this version of the broker/);
  refused('', /it is empty/);
  refused(`${whole}{"queue":"q","gone":9}\n`, /after 4 records: message 9 was never there/);
}));

test('a journal with more changes than messages is written anew', () => withFolder((folder) => {
  const { queue, journal, file } = openQueue(folder, {}, 10_000);
  queue.put(makeMessage(), 0);
  for (let i = 0; i < 1000; i += 1) {
    queue.settle(queue.lockNext(i).lock.token, 'released', i);
    journal.flush();
  }
  assert.ok(statSync(file).size < 20_000);
  assert.equal(openQueue(folder).queue.size, 1);
}));

test('a broker whose journal another one has taken over keeps nothing more', () => withFolder((folder) => {
  const [first, second] = [openQueue(folder), openQueue(folder)];
  for (const { queue } of [first, second]) queue.put(makeMessage(), 0);
  second.journal.flush();
  assert.throws(() => first.journal.flush(), /belongs to another broker/);
  assert.equal(openQueue(folder).queue.size, 1);
}));

test('many changes are written in small pieces', (t) => withFolder((folder) => {
  const { queue, journal } = openQueue(folder);
  const writes = t.mock.method(fs, 'writevSync');
  syncBuiltinESMExports();
  t.after(() => {
    writes.mock.restore();
    syncBuiltinESMExports();
  });
  const bare = 'x'.repeat(200_000);
  for (let i = 0; i < 50; i += 1) queue.put(makeMessage({ bare }), 0);
  journal.flush();
  const lengths = writes.mock.calls.map(({ result }) => result);
  assert.ok(Math.max(...lengths) < 1_500_000, `${lengths}`);
  assert.equal(openQueue(folder).queue.size, 50);
}));
