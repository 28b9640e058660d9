/** Reads the queues from a Config.json in the format of Microsoft's Service Bus emulator and checks it with its limits. */
import { readFileSync } from 'node:fs';

const NAMESPACE = 'sbemulatorns';
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Everything that is wrong with the configuration, one fault per line. */
export class ConfigError extends Error {
  constructor(path, faults) {
    super([`${path} cannot be used:`, ...faults.map((fault) => `  - ${fault}`)].join('\n'));
  }
}

/** The rules of every queue, by name as written in the file. */
export function readConfig(path) {
  let content;
  try {
    content = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new ConfigError(path, [error.message]);
  }
  const faults = [];
  const queues = readNamespaces(content?.UserConfig?.Namespaces, faults);
  if (faults.length > 0) throw new ConfigError(path, faults);
  return queues;
}

function readNamespaces(namespaces, faults) {
  const queues = new Map();
  if (!Array.isArray(namespaces) || namespaces.length !== 1) {
    faults.push('UserConfig.Namespaces must be a list with exactly one namespace');
    return queues;
  }
  const { Name: name, Queues: list, Topics: topics } = namespaces[0] ?? {};
  if (name !== NAMESPACE) faults.push(`the namespace must be named "${NAMESPACE}", not ${JSON.stringify(name)}`);
  if (!Array.isArray(topics)) faults.push('Topics must be there, as an empty list');
  else if (topics.length > 0) faults.push('Topics are not supported by this broker: the list must be empty');
  if (!Array.isArray(list)) faults.push('Queues must be a list');
  else list.forEach((queue, index) => readQueue(queue, index, queues, faults));
  for (const [name, { forwardDeadLetters: to }] of queues) checkForward(name, to, queues, faults);
  return queues;
}

/** One hop is enough, and cannot go round in a circle. */
function checkForward(name, to, queues, faults) {
  if (to === null) return;
  if (!queues.has(to)) faults.push(`queue "${name}": there is no queue "${to}" to forward dead letters to`);
  else if (queues.get(to).forwardDeadLetters !== null) {
    faults.push(`queue "${name}": dead letters go to "${to}", which itself forwards its own: this broker forwards once`);
  }
}

function readQueue(queue, index, queues, faults) {
  const name = queue?.Name;
  if (typeof name !== 'string' || !/^[\w.\-~/]{1,260}$/.test(name)) {
    faults.push(`Queues[${index}].Name must be 1 to 260 letters, digits or any of . - _ ~ /, not ${JSON.stringify(name)}`);
    return;
  }
  if ([...queues.keys()].some((other) => other.toLowerCase() === name.toLowerCase())) {
    faults.push(`queue "${name}" is there twice (case does not count)`);
  }
  queues.set(name, readRules(queue.Properties ?? {}, (fault) => faults.push(`queue "${name}": ${fault}`)));
}

function readRules(properties, fault) {
  for (const name of Object.keys(properties)) {
    if (!(name in CHECKS)) fault(`${name} is not a known property`);
  }
  const values = {};
  for (const [name, check] of Object.entries(CHECKS)) {
    values[name] = check(name, properties[name], fault);
  }
  return {
    lockDuration: values.LockDuration,
    maxDeliveryCount: values.MaxDeliveryCount,
    timeToLive: values.DefaultMessageTimeToLive,
    deadLetterExpired: values.DeadLetteringOnMessageExpiration,
    forwardDeadLetters: values.ForwardDeadLetteredMessagesTo,
    duplicateWindow: values.RequiresDuplicateDetection ? values.DuplicateDetectionHistoryTimeWindow : null,
  };
}

const CHECKS = {
  LockDuration: duration(MINUTE, 5 * MINUTE, 'PT5M'),
  DefaultMessageTimeToLive: duration(HOUR, HOUR, 'PT1H'),
  DuplicateDetectionHistoryTimeWindow: duration(MINUTE, 5 * MINUTE, 'PT5M'),
  MaxDeliveryCount: deliveryCount,
  RequiresDuplicateDetection: flag,
  DeadLetteringOnMessageExpiration: flag,
  RequiresSession: unsupported,
  ForwardTo: unsupported,
  ForwardDeadLetteredMessagesTo: queueName,
};

function duration(byDefault, limit, limitText) {
  return (name, value = null, fault) => {
    if (value === null) return byDefault;
    const milliseconds = parseDuration(value);
    if (milliseconds === null || milliseconds <= 0) {
      fault(`${name} must be an ISO 8601 duration longer than zero, such as PT30S, not ${JSON.stringify(value)}`);
    } else if (milliseconds > limit) fault(`${name} may be at most ${limitText}, not ${value}`);
    return milliseconds;
  };
}

/** Milliseconds of an ISO 8601 duration of days and smaller; null when it is none. */
export function parseDuration(text) {
  const match = /^P(?=.)(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/.exec(text);
  if (match === null) return null;
  const [days, hours, minutes, seconds] = match.slice(1).map((part) => Number(part ?? 0));
  return Math.round(days * DAY + hours * HOUR + minutes * MINUTE + seconds * SECOND);
}

function deliveryCount(name, value = 10, fault) {
  if (!Number.isInteger(value) || value < 1 || value > 2000) {
    fault(`${name} must be a whole number from 1 to 2000, not ${JSON.stringify(value)}`);
  }
  return value;
}

function flag(name, value = false, fault) {
  if (typeof value !== 'boolean') fault(`${name} must be true or false, not ${JSON.stringify(value)}`);
  return value;
}

function queueName(name, value = null, fault) {
  if (value === null || value === '') return null;
  if (typeof value === 'string') return value;
  fault(`${name} must be the name of a queue, not ${JSON.stringify(value)}`);
  return null;
}

function unsupported(name, value, fault) {
  if (value) fault(`${name} is not supported by this broker: leave it out`);
}
