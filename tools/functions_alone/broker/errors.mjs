/** AMQP errors as the Python SDK needs them. */

/**
 * An error with an info map that is not empty: the SDK reads the map without looking whether it is there, so that a rejected
 * send hangs, and a closed connection raises IndexError instead of being opened again, when it is not.
 */
export function amqpError(condition, description) {
  return { condition, description, info: { broker: 'local' } };
}

/** As documented for the real service: "you can't dead-letter a message from a DLQ". */
export const DEAD_TWICE = amqpError('amqp:not-allowed', 'A message in a dead-letter queue cannot be dead-lettered again.');
