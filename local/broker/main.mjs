/**
 * A local Service Bus: queues over AMQP 1.0 for the official SDKs, without sessions, topics, forwarding and transactions.
 *
 *     node local/broker/main.mjs --config Config.json --port 5672 --health-port 5300 --data DIR
 *
 * Port 0 takes any free one; the line that says the broker is ready names the ports. It listens on 127.0.0.1 only. On
 * SIGTERM or SIGINT it writes all messages to DIR, and takes them up again at the next start. There is no journal: a broker
 * that is killed (SIGKILL) falls back to its last orderly stop, so what came in since is lost, and what was completed since
 * may be delivered again.
 *
 * Exit codes: 0 stopped, 1 could not start (port taken, snapshot unreadable), 2 wrong arguments or configuration.
 */
import { parseArgs } from 'node:util';

import { Broker } from './broker.mjs';
import { ConfigError, readConfig } from './config.mjs';
import { HealthServer } from './health.mjs';
import { AmqpServer } from './server.mjs';
import { loadSnapshot, saveSnapshot } from './snapshot.mjs';

class UsageError extends Error {}

function readArguments() {
  const text = { type: 'string' };
  const options = { config: text, data: text, port: { ...text, default: '5672' }, 'health-port': { ...text, default: '5300' } };
  let values;
  try {
    ({ values } = parseArgs({ options }));
  } catch (error) {
    throw new UsageError(error.message);
  }
  if (!values.config || !values.data) throw new UsageError('--config and --data are needed.');
  return { ...values, port: readPort(values.port), healthPort: readPort(values['health-port']) };
}

function readPort(text) {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65535) throw new UsageError(`${text} is not a port.`);
  return port;
}

async function listen(server, port) {
  try {
    return await server.listen(port);
  } catch (error) {
    if (error.code === 'EADDRINUSE') throw new Error(`Port ${port} is taken by another process.`);
    throw error;
  }
}

async function start() {
  const { config, data, port, healthPort } = readArguments();
  const broker = new Broker(readConfig(config));
  loadSnapshot(data, (name) => broker.find(name));
  const amqp = new AmqpServer(broker);
  const health = new HealthServer(broker);
  const amqpPort = await listen(amqp, port);
  const ports = `127.0.0.1:${amqpPort}, health on http://127.0.0.1:${await listen(health, healthPort)}/health`;
  for (const queue of broker.all()) broker.serve(queue);
  stopOnSignal({ data, broker, amqp, health });
  console.log(`Service Bus broker ready on ${ports}`);
}

/** Linux tells a child more than once that its parent is gone: what comes after the first signal must not end us early. */
function stopOnSignal(parts) {
  let stopping;
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => (stopping ??= stop(parts)));
}

/** Nothing is acknowledged after the snapshot: first everything stands still, then it is written. */
async function stop({ data, broker, amqp, health }) {
  amqp.freeze();
  broker.stop();
  try {
    saveSnapshot(data, broker.all());
  } catch (error) {
    console.error(`The messages could not be written: ${error.message}`);
    process.exitCode = 1;
  }
  health.close();
  await amqp.close();
  process.exit();
}

try {
  await start();
} catch (error) {
  console.error(error.message);
  process.exit(error instanceof ConfigError || error instanceof UsageError ? 2 : 1);
}
