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
  return { connection, close };

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
