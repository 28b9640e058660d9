/**
 * AMQP 1.0 by rhea: connections, links and deliveries, turned into calls of the queues. What rhea does not do by itself, and
 * the SDK needs, is commented where it is done.
 */
import net from 'node:net';

import rhea from 'rhea';

import { DEAD_TWICE, amqpError } from './errors.mjs';
import { answer } from './management.mjs';
import { MAX_MESSAGE_BYTES, parseTransfer } from './message.mjs';
import { LinkReceiver, deadLetterProperties, modifiedProperties } from './receiver.mjs';
import { mendSession } from './session.mjs';
import { whyRefused } from './tokens.mjs';

const { message, types } = rhea;
const MAX_FRAME_BYTES = 64 * 1024;
const IDLE_TIMEOUT_MS = 240_000;
const HANDSHAKE_TIMEOUT_MS = 60_000;
const CLOSING_TIME_MS = 300;
const CREDIT_WINDOW = 1000;
const SESSION_FILTER = 'com.microsoft:session-filter';
const MANAGEMENT_SUFFIX = '/$management';

// rhea decodes a received message and would encode it anew, with other AMQP types. Here it hands on the bytes.
const decodeMessage = message.decode;
message.decode = (bytes) => bytes;

export class AmqpServer {
  #broker;
  #connections = new Set();
  #container;
  #server;
  #stopping = false;

  constructor(broker) {
    this.#broker = broker;
    this.#container = rhea.create_container({
      id: 'service-bus',
      autoaccept: false,
      credit_window: CREDIT_WINDOW,
      treat_modified_as_released: false,
    });
    const mechanisms = this.#container.sasl_server_mechanisms;
    mechanisms.enable_anonymous();
    // Microsoft's own name for it, the only one that the SDK for .NET knows.
    mechanisms.MSSBCBS = mechanisms.ANONYMOUS;
    this.#listenToEvents();
    this.#server = net.createServer({ noDelay: true, keepAlive: true }, (socket) => this.#accept(socket));
  }

  /** Resolves to the port it listens on. */
  listen(port) {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ port, host: '127.0.0.1', backlog: 511 }, () => resolve(this.#server.address().port));
    });
  }

  /** From here on nothing that comes in changes a queue. */
  freeze() {
    this.#stopping = true;
    this.#server.close();
  }

  /** Tells every client that the broker stops, and waits a moment for them. */
  async close() {
    for (const connection of this.#connections) {
      connection.close(amqpError('amqp:connection:forced', 'The broker is stopping.'));
    }
    const deadline = Date.now() + CLOSING_TIME_MS;
    while (this.#connections.size > 0 && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 10));
    for (const connection of this.#connections) connection.socket.destroy();
  }

  // --- connections

  #accept(socket) {
    const connection = this.#container.create_connection({
      idle_time_out: IDLE_TIMEOUT_MS,
      max_frame_size: MAX_FRAME_BYTES,
      reconnect: false,
    });
    const fail = (error) => {
      if (!socket.destroyed) console.error(`Closed the connection from port ${socket.remotePort}: ${error.message ?? error}`);
      socket.destroy();
    };
    guard(connection, fail, () => this.#broker.keep());
    connection.on('error', fail);
    connection.on('protocol_error', fail);
    // rhea would say goodbye with an error that the SDK cannot read (see errors.mjs).
    connection.idle = () => fail(new Error('nothing was heard from it for too long'));
    socket.setTimeout(HANDSHAKE_TIMEOUT_MS, () => fail(new Error('no AMQP handshake')));
    socket.on('close', () => this.#forget(connection));
    this.#connections.add(connection);
    connection.accept(socket);
  }

  #forget(connection) {
    this.#connections.delete(connection);
    for (const timer of ['heartbeat_in', 'heartbeat_out', 'abort_idle']) clearTimeout(connection[timer]);
    connection.each_sender((sender) => this.#leave(sender));
  }

  #listenToEvents() {
    const on = (name, handle) => this.#container.on(name, (context) => {
      if (!this.#stopping) handle(context);
    });
    on('connection_open', ({ connection }) => connection.socket.setTimeout(0));
    on('session_open', ({ session }) => mendSession(session, ({ route }) => route?.kind === 'management'));
    on('receiver_open', ({ receiver }) => this.#openProducer(receiver));
    on('sender_open', ({ sender }) => this.#openConsumer(sender));
    on('sender_close', ({ sender }) => this.#leave(sender));
    on('session_close', ({ session }) => session.each_sender((sender) => this.#leave(sender)));
    on('message', (context) => this.#receive(context));
    on('sendable', ({ sender }) => this.#serve(sender));
    on('sender_draining', ({ sender }) => this.#drain(sender));
    on('accepted', ({ delivery }) => this.#settle(delivery, 'completed', message.accepted()));
    on('released', ({ delivery }) => this.#settle(delivery, 'released', message.released()));
    on('modified', ({ delivery }) => this.#modify(delivery));
    on('rejected', ({ delivery }) => this.#deadLetter(delivery));
    // Settled without an outcome: given back.
    on('settled', ({ delivery }) => this.#settle(delivery, 'released', undefined));
    // Without a listener rhea writes these to the console, or throws them.
    for (const name of ['disconnected', 'connection_error', 'connection_close', 'session_error', 'error']) on(name, () => {});
  }

  // --- links

  #openProducer(receiver) {
    const { address } = receiver.target ?? {};
    receiver.set_source({ address: receiver.source?.address });
    receiver.set_target({ address });
    receiver.local.attach.max_message_size = MAX_MESSAGE_BYTES;
    copySettleModes(receiver);
    receiver.route = this.#route(address);
    if (receiver.route === null) refuseUnknown(receiver, address);
    else if (receiver.route.kind === 'queue' && receiver.route.queue.deadLetters === null) {
      refuse(receiver, 'amqp:not-allowed', 'Nothing can be sent to a dead-letter queue.');
    }
  }

  #openConsumer(sender) {
    const { address, filter } = sender.source ?? {};
    sender.set_source({ address });
    sender.set_target({ address: sender.target?.address });
    copySettleModes(sender);
    sender.route = this.#route(address);
    if (sender.route === null) refuseUnknown(sender, address);
    else if (SESSION_FILTER in (filter ?? {})) {
      refuse(sender, 'amqp:not-allowed', `The queue '${sender.route.path}' has no sessions: this broker does not offer them.`);
    } else if (sender.route.kind === 'queue') process.nextTick(() => this.#join(sender));
  }

  /** After the turn in which rhea answers the attach: within a turn it writes what is delivered first. */
  #join(sender) {
    if (!sender.is_open() || sender.connection.socket.destroyed) return;
    sender.consumer = new LinkReceiver(sender);
    this.#broker.join(sender.route.queue, sender.consumer);
    // What the client asked for meanwhile.
    if (sender._draining) this.#drain(sender);
    else this.#serve(sender);
  }

  /** What an address, a path or a whole URI, names; null when there is no such thing. */
  #route(address) {
    const path = pathOf(address ?? '');
    if (path === '$cbs') return { kind: 'cbs', path };
    const isManagement = path.toLowerCase().endsWith(MANAGEMENT_SUFFIX);
    const queue = this.#broker.find(isManagement ? path.slice(0, -MANAGEMENT_SUFFIX.length) : path);
    return queue === undefined ? null : { kind: isManagement ? 'management' : 'queue', path, queue };
  }

  /** Its locks stay until they run out: they belong to the messages, not to the link. */
  #leave(sender) {
    if (sender.consumer === undefined) return;
    this.#broker.leave(sender.route.queue, sender.consumer);
    // What came in the same packet as the detach, messages given back above all, reaches us later in this turn.
    process.nextTick(() => {
      sender.consumer?.close();
      sender.consumer = undefined;
    });
  }

  #serve(sender) {
    if (sender.consumer !== undefined) this.#broker.serve(sender.route.queue);
  }

  #drain(sender) {
    this.#serve(sender);
    sender.consumer?.drain();
  }

  // --- what clients send

  #receive({ receiver, delivery, message: bytes }) {
    const { kind, path, queue } = receiver.route;
    try {
      if (kind === 'queue') this.#enqueue(queue, delivery, bytes);
      else this.#reply(receiver.session, path, delivery, decodeMessage(bytes), queue);
    } catch (error) {
      reject(delivery, 'amqp:decode-error', `This is not a valid message: ${error.message}`);
    }
  }

  #enqueue(queue, delivery, bytes) {
    if (bytes.length > MAX_MESSAGE_BYTES) {
      const description = `A message, or a batch, may have at most ${MAX_MESSAGE_BYTES} bytes; this has ${bytes.length}.`;
      return reject(delivery, 'amqp:link:message-size-exceeded', description);
    }
    const now = Date.now();
    for (const transferred of parseTransfer(bytes, delivery.format)) queue.put(transferred, now);
    delivery.update(true, message.accepted().described());
    this.#broker.serve(queue);
  }

  /** Answers a request on the link of the same session that receives from the same path. */
  #reply(session, path, delivery, request, queue) {
    const now = Date.now();
    const reply = queue === undefined ? answerToToken(request.body, now) : answer(queue, request, now);
    delivery.update(true, message.accepted().described());
    const sender = session.find_link((link) => link.is_sender() && link.route?.path === path);
    // Settled at once: rhea frees a delivery only when it is settled on both sides.
    if (sender) sender.send({ ...reply, correlation_id: request.message_id }).settled = true;
    if (queue !== undefined) this.#broker.serve(queue);
  }

  // --- settlement

  #modify(delivery) {
    const { undeliverable_here: undeliverable } = delivery.remote_state;
    const modified = message.modified({ delivery_failed: true, undeliverable_here: Boolean(undeliverable) });
    this.#settle(delivery, undeliverable ? 'deferred' : 'abandoned', modified, modifiedProperties(delivery));
  }

  #deadLetter(delivery) {
    const { consumer, route } = delivery.link;
    if (route.queue.deadLetters === null) return consumer?.refuse(delivery, DEAD_TWICE);
    // Answered with the same outcome, but without an error: the SDK takes an error for a refusal.
    this.#settle(delivery, 'deadLettered', message.rejected(), deadLetterProperties(delivery));
  }

  #settle(delivery, outcome, reply, properties) {
    const { consumer, route } = delivery.link;
    if (!consumer?.settle(delivery, outcome, reply, properties)) return;
    this.#broker.serve(route.queue);
  }
}

/**
 * Lets an exception end its connection, not the process; closes a connection that announces a frame it may not send; and
 * sends the frames of one turn together, after what they tell is kept.
 */
function guard(connection, fail, keep) {
  const wrap = (method) => {
    const original = connection[method];
    connection[method] = function guarded(...parameters) {
      connection.socket.cork();
      try {
        original.apply(connection, parameters);
        if (connection.frame_size > MAX_FRAME_BYTES) fail(new Error(`a frame of ${connection.frame_size} bytes`));
      } catch (error) {
        fail(error);
      }
      // Outside of the catch: a broker that cannot keep what it was sent must end before it answers.
      keep();
      connection.socket.uncork();
    };
  };
  wrap('input');
  wrap('_process');
}

function copySettleModes(link) {
  link.local.attach.snd_settle_mode = link.snd_settle_mode;
  link.local.attach.rcv_settle_mode = link.rcv_settle_mode;
}

/** The path in a whole URI, or in the absolute path that the SDK for .NET sends, without its first slash. */
function pathOf(address) {
  const path = address.replace(/^(?:[a-z][a-z0-9+.-]*:\/\/[^/]*)?\//i, '');
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** By AMQP 1.0, 2.6.3: without the terminus that the client asked this end for, it knows that the link does not exist. */
function refuse(link, condition, description) {
  const terminus = link.is_receiver() ? 'target' : 'source';
  link.local.attach[terminus] = undefined;
  link.close(amqpError(condition, description));
}

function refuseUnknown(link, address) {
  const description = `The messaging entity '${pathOf(address ?? '')}' could not be found. This broker offers queues, not topics.`;
  refuse(link, 'amqp:not-found', description);
}

function reject(delivery, condition, description) {
  delivery.update(true, message.rejected({ error: amqpError(condition, description) }).described());
}

function answerToToken(token, now) {
  const why = whyRefused(token, now);
  const properties = { 'status-code': types.wrap_int(why ? 401 : 202), 'status-description': why ?? 'Accepted' };
  return { application_properties: properties, body: '' };
}
