// The queue's rules at exact times and in numbers that a test with a real clock cannot have. Run by test_broker_queue_rules.py.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Queue } from '../../../local/broker/queue.mjs';

const RULES = { lockDuration: 100, maxDeliveryCount: 3, timeToLive: null, deadLetterExpired: false, duplicateWindow: null };

function makeQueue(rules = {}) {
  return new Queue('q', { ...RULES, ...rules }, new Queue('q/$DeadLetterQueue', RULES));
}

function makeMessage(fields = {}) {
  return {
    durable: false, priority: 4, ttl: null, id: null, scheduledFor: null, annotations: [], bare: Buffer.alloc(0), ...fields,
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

test('released deliveries never dead-letter, failed ones do at the limit', () => {
  const queue = makeQueue();
  queue.put(makeMessage(), 0);
  for (let i = 0; i < 10; i += 1) queue.settle(queue.lockNext(i).lock.token, 'released', i);
  for (let i = 0; i < 3; i += 1) queue.settle(queue.lockNext(i).lock.token, 'abandoned', i);
  assert.deepEqual([queue.size, queue.deadLetters.size], [0, 1]);
  assert.equal(queue.deadLetters.lockNext(5).deliveryCount, 3);
});

test('a duplicate counts from the first message, whatever became of it, and not beyond the window', () => {
  const queue = makeQueue({ duplicateWindow: 100 });
  const first = queue.put(makeMessage({ id: 'a' }), 0);
  queue.removeNext(0);
  assert.equal(queue.put(makeMessage({ id: 'a' }), 99), first);
  assert.equal(queue.size, 0);
  assert.notEqual(queue.put(makeMessage({ id: 'a' }), 100), first);
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

test('what is dumped and restored goes on as before', () => {
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
