/**
 * A local Service Bus: queues over AMQP 1.0 for the official SDKs, without sessions, topics, forwarding (but of dead letters) and transactions.
 *
 *     node tools/functions_alone/broker/main.mjs --config Config.json --port 5672 --health-port 5300 --data DIR
 *
 * Port 0 takes any free one; the line that says the broker is ready names the ports. It listens on 127.0.0.1 only. Messages
 * lie in DIR too, before a client is told that they were taken or settled, so that they survive the broker's end, also by
 * SIGKILL (see journal.mjs).
 *
 * Exit codes: 0 stopped, 1 could not start (port taken, journal unreadable), 2 wrong arguments or configuration.
 */
import { parseArgs } from 'node:util';

import { Broker } from './broker.mjs';
import { ConfigError, readConfig } from './config.mjs';
import { HealthServer } from './health.mjs';
import { giveMemoryBack } from './idle.mjs';
import { Journal } from './journal.mjs';
import { AmqpServer } from './server.mjs';

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
  const rules = readConfig(config);
  const journal = new Journal(data);
  const broker = new Broker(rules, journal);
  const amqp = new AmqpServer(broker);
  const health = new HealthServer(broker);
  const amqpPort = await listen(amqp, port);
  const ports = `127.0.0.1:${amqpPort}, health on http://127.0.0.1:${await listen(health, healthPort)}/health`;
  // After the ports, so that a second broker leaves the first one's journal alone; and before Node takes the first connection.
  journal.open(broker.all());
  for (const queue of broker.all()) broker.serve(queue);
  giveMemoryBack();
  stopOnSignal({ journal, broker, amqp, health });
  console.log(`Service Bus broker ready on ${ports}`);
}

/** Linux tells a child more than once that its parent is gone: what comes after the first signal must not end us early. */
function stopOnSignal(parts) {
  let stopping;
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => (stopping ??= stop(parts)));
}

/** Nothing changes any more when the journal is closed. */
async function stop({ journal, broker, amqp, health }) {
  amqp.freeze();
  broker.stop();
  journal.close();
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
