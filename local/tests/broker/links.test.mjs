// What a client sees of connections and links: SASL, addresses, a refused link. Run by test_broker_queue_rules.py.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';

import rhea from 'rhea';

import { Broker } from '../../broker/broker.mjs';
import { AmqpServer } from '../../broker/server.mjs';

const RULES = { lockDuration: 60_000, maxDeliveryCount: 3, timeToLive: null, deadLetterExpired: false, duplicateWindow: null };
const KEPT_BY_NOBODY = new Proxy({}, { get: () => () => null });

/** A client of a broker with the queue `plain`. */
async function connected(mechanism = 'ANONYMOUS') {
  const broker = new Broker(new Map([['plain', RULES]]), KEPT_BY_NOBODY);
  for (const queue of broker.all()) broker.serve(queue);
  const server = new AmqpServer(broker);
  const container = rhea.create_container({ autoaccept: false });
  const port = await server.listen(0);
  const mechanisms = container.sasl.client_mechanisms();
  mechanisms[mechanism] = (mechanisms.enable_anonymous('me'), mechanisms.ANONYMOUS);
  if (mechanism !== 'ANONYMOUS') delete mechanisms.ANONYMOUS;
  const connection = container.connect({ port, host: '127.0.0.1', sasl_mechanisms: mechanisms, reconnect: false });
  await once(connection, 'connection_open');
  return { connection, broker, close };

  async function close() {
    connection.close();
    await once(connection, 'connection_close');
    server.freeze();
    broker.stop();
    await server.close();
  }
}

test('the SASL mechanism of the SDK for .NET is served', async () => {
  const { connection, close } = await connected('MSSBCBS');
  assert.equal(connection.is_open(), true);
  await close();
});

for (const address of ['plain', '/plain', '/plain/$DeadLetterQueue', '/plain/$management', 'amqp://127.0.0.1/plain']) {
  test(`the address ${address} names a queue`, async () => {
    const { connection, close } = await connected();
    const receiver = connection.open_receiver({ source: address });
    await once(receiver, 'receiver_open');
    assert.equal(receiver.is_open(), true);
    await close();
  });
}

for (const role of ['sender', 'receiver']) {
  test(`a ${role} on a queue that is not there is refused: an attach without a terminus, then the error`, async () => {
    const { connection, close } = await connected();
    const link = role === 'sender' ? connection.open_sender('none') : connection.open_receiver('none');
    await once(link, `${role}_error`);
    const attach = link.remote.attach;
    assert.deepEqual([attach.source?.value, attach.target?.value], [null, null]);
    assert.equal(link.error.condition, 'amqp:not-found');
    await close();
  });
}

/** Puts messages into the queue. */
async function send(connection, ...bodies) {
  const sender = connection.open_sender('plain');
  await once(sender, 'sendable');
  for (const body of bodies) {
    sender.send({ body });
    await once(sender, 'accepted');
  }
}

test('a message may be dead-lettered without a reason', async () => {
  const { connection, broker, close } = await connected();
  await send(connection, 'a');
  const receiver = connection.open_receiver({ source: 'plain' });
  const [{ delivery }] = await once(receiver, 'message');
  const error = rhea.types.wrap(null); // written out, as the SDK for .NET does
  delivery.update(true, rhea.types.wrap_described([error], 'amqp:rejected:list'));
  await send(connection, 'b'); // on the same connection: the broker has read what came before
  assert.equal(broker.counts().plain.deadLettered, 1);
  await close();
});

test('a client that asks for its credit back learns that waiting messages have used it up', async () => {
  const { connection, close } = await connected();
  await send(connection, 'a', 'b', 'c');
  const receiver = connection.open_receiver({ source: 'plain', credit_window: 0 });
  await once(receiver, 'receiver_open');
  receiver.drain_credit();
  receiver.add_credit(2);
  await once(receiver, 'receiver_flow');
  await close();
});
