/** What the broker takes from inside of rhea, which promises none of it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import test from 'node:test';

import rhea from 'rhea';

import '../../broker/server.mjs';
import { Deliveries } from '../../broker/session.mjs';

const OF_DELIVERIES = Object.getOwnPropertyNames(Deliveries.prototype).filter((name) => name !== 'constructor');
const PATIENCE_MS = 30_000;
const LONGER_THAN_A_PACKET = 'x'.repeat(1_000_000);

/** Sends a message from one end of a connection to the other, and looks at what is there when it has come. */
async function send(message, look) {
  const container = rhea.create_container({ id: 'both ends' });
  const server = net.createServer((socket) => container.create_connection().accept(socket)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = container.connect({ port: server.address().port, host: '127.0.0.1', reconnect: false });
  const sender = client.open_sender('queue');
  sender.once('sendable', () => sender.send(message));
  try {
    const [context] = await once(container, 'message', { signal: AbortSignal.timeout(PATIENCE_MS) });
    look({ ...context, sender });
  } finally {
    client.close();
    await once(container, 'connection_close');
    server.close();
  }
}

test('what the broker puts in the place of message.decode is used: it gets the bytes as they were sent', () =>
  send({ body: 'hello' }, ({ message: bytes }) => {
    assert.ok(Buffer.isBuffer(bytes), `it got ${JSON.stringify(bytes)}`);
    assert.deepEqual(bytes, rhea.message.encode({ body: 'hello' }));
  }));

test('a session, a link and a connection have what the broker changes in them', () =>
  send({ body: LONGER_THAN_A_PACKET }, ({ connection, receiver, sender, session }) => {
    for (const name of OF_DELIVERIES) assert.equal(typeof session.outgoing.deliveries[name], 'function', name);
    assert.equal(typeof session.incoming.on_transfer, 'function');
    assert.equal(typeof session.incoming.next_delivery_id, 'number');
    for (const name of ['input', '_process', 'idle']) assert.equal(typeof connection[name], 'function', name);
    for (const name of ['frame_size', 'heartbeat_in', 'abort_idle']) assert.ok(name in connection, name);
    assert.ok('_incomplete' in receiver);
    assert.ok('_draining' in sender);
    assert.equal(typeof receiver.local.attach, 'object');
  }));
