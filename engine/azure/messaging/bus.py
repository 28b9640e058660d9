"""Service Bus, with one pooled sender for each queue.

Concurrent messages to a queue share a batch.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta

from azure.servicebus import ServiceBusMessage, ServiceBusMessageBatch
from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver, ServiceBusSender
from azure.servicebus.exceptions import (
    MessageSizeExceededError,
    MessagingEntityDisabledError,
    MessagingEntityNotFoundError,
    ServiceBusAuthorizationError,
    ServiceBusQuotaExceededError,
)
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_before_delay,
    wait_exponential_jitter,
)

from engine.azure.failures import OUTAGES, azure_errors
from engine.concurrency import GroupCommit
from engine.domain.errors import InputFault, InvalidError, QueueRefusedError, UnavailableError
from engine.domain.messages import BusMessage

MILLISECOND = timedelta(milliseconds=1)
SEND_TIMEOUT_SECONDS = 15.0
PEEK_TIMEOUT_SECONDS = 3.0
REFUSALS = (
    MessagingEntityNotFoundError,
    MessagingEntityDisabledError,
    ServiceBusAuthorizationError,
    ServiceBusQuotaExceededError,
)
"""Errors of a single queue while the bus itself can be reached."""
REFUSED_FOR = timedelta(seconds=1)
"""How long a message is retried that its queue refuses. The whole batch waits for it."""
LONGEST_LIFE = timedelta(days=49)
"""The longest time to live. The protocol counts milliseconds in 32 bits."""
MAX_SENDERS = 32
"""How many idle senders stay open.

The app's own queues are fewer, but each sender of orders may have a private queue.
"""
MAX_IN_A_BATCH = 500
"""The most messages in a batch. More would only delay those that come after."""


class ServiceBus:
    """`Bus` on Azure Service Bus, its emulator, or the local broker."""

    def __init__(self, client: Callable[[], ServiceBusClient]) -> None:
        self._client = client
        self._senders: dict[str, ServiceBusSender] = {}
        """The idle senders by queue, the least recently used first."""
        self._peeking: ServiceBusReceiver | None = None
        """The receiver of probes, which stays open between probes. None during a probe."""
        self._closing: set[asyncio.Task[None]] = set()
        self._sends: GroupCommit[BusMessage | None, None] = GroupCommit(self._flush)
        """The waiting messages. None in the place of a message only opens the sender."""

    async def send(self, messages: Sequence[BusMessage]) -> None:
        """Send messages.

        Raises `InvalidError` for a message that cannot be sent, such as one too large.
        """
        outcomes = await asyncio.gather(
            *map(self._send_while_it_lives, messages), return_exceptions=True
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def _send_while_it_lives(self, message: BusMessage) -> None:
        """Retry an outage until the message expires, and a refusal for `REFUSED_FOR`."""
        life = message.time_to_live or timedelta()
        life = life if message.patience is None else min(life, message.patience)

        def stop(state: RetryCallState) -> bool:
            limit = min(life, REFUSED_FOR) if _is_refused(state) else life
            return stop_before_delay(limit)(state)

        retrying = AsyncRetrying(
            retry=retry_if_exception_type(UnavailableError),
            wait=wait_exponential_jitter(multiplier=0.1, max=2, jitter=0.2),
            stop=stop,
            reraise=True,
        )
        try:
            async with asyncio.timeout(life.total_seconds() or None):
                await retrying(self._sends.submit, message.queue, message)
        except TimeoutError as error:
            fault = f"queue {message.queue}: no answer within the lifetime of the message"
            raise UnavailableError(fault) from error

    async def probe(self, queues: Sequence[str]) -> None:
        """Open the senders, so that the first message need not wait, and check the connection."""
        await asyncio.gather(*(self._sends.submit(queue, None) for queue in queues))
        # An open sender does not notice that the bus is unavailable. A peek does.
        receiver = self._peeking or self._client().get_queue_receiver(queues[0])
        self._peeking = None
        try:
            with azure_errors(f"queue {queues[0]}"):
                await receiver.peek_messages(max_message_count=1, timeout=PEEK_TIMEOUT_SECONDS)
        except UnavailableError:
            self._close_later(receiver)
            raise
        self._peeking = receiver

    async def close(self) -> None:
        while self._senders:
            self._close_later(self._senders.popitem()[1])
        if self._peeking:
            self._close_later(self._peeking)
        await asyncio.gather(*self._closing)

    async def _flush(
        self, queue: str, waiting: Sequence[BusMessage | None]
    ) -> list[Exception | None]:
        try:
            with azure_errors(f"queue {queue}"), self._sender(queue) as sender:
                batch = await sender.create_message_batch()  # opens the link, if it is not open
                return await _send(sender, batch, waiting[:MAX_IN_A_BATCH])
        except UnavailableError as error:
            if isinstance(error.__cause__, REFUSALS):
                raise QueueRefusedError(str(error)) from error.__cause__
            raise

    @contextmanager
    def _sender(self, queue: str) -> Iterator[ServiceBusSender]:
        """Reserve the sender of a queue. Close it if its link may be broken.

        Closing can take a second, so it happens in the background. If there are too many senders,
        the least recently used one is closed.
        """
        sender = self._senders.pop(queue, None) or self._client().get_queue_sender(queue)
        try:
            yield sender
        except BaseException:
            self._close_later(sender)
            raise
        self._senders[queue] = sender
        if len(self._senders) > MAX_SENDERS:
            self._close_later(self._senders.pop(next(iter(self._senders))))

    def _close_later(self, link: ServiceBusSender | ServiceBusReceiver) -> None:
        task = asyncio.create_task(_close(link))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _is_refused(state: RetryCallState) -> bool:
    """Whether the queue itself refused the message."""
    return state.outcome is not None and isinstance(state.outcome.exception(), QueueRefusedError)


async def _send(
    sender: ServiceBusSender, batch: ServiceBusMessageBatch, waiting: Sequence[BusMessage | None]
) -> list[Exception | None]:
    """Send the first messages that fit into the batch.

    A message that no queue can accept fails alone.
    """
    outcomes: list[Exception | None] = []
    for message in waiting:
        try:
            if message:
                batch.add_message(_outgoing(message))
            outcomes.append(None)
        except (MessageSizeExceededError, ValueError, TypeError) as error:
            if isinstance(error, MessageSizeExceededError) and len(batch):
                break  # it goes with the next batch
            facts = {"message": message and message.message_id, "error": str(error)}
            outcomes.append(InvalidError([InputFault("", "cannot-be-sent", facts)]))
    if len(batch):
        await sender.send_messages(batch, timeout=SEND_TIMEOUT_SECONDS)
    return outcomes


async def _close(link: ServiceBusSender | ServiceBusReceiver) -> None:
    with suppress(*OUTAGES):
        async with asyncio.timeout(SEND_TIMEOUT_SECONDS):
            await link.close()


def _outgoing(message: BusMessage) -> ServiceBusMessage:
    life = message.time_to_live and min(message.time_to_live, LONGEST_LIFE)
    outgoing = ServiceBusMessage(
        message.body,
        content_type="application/json",
        message_id=message.message_id,
        correlation_id=message.correlation_id,
        reply_to=message.reply_to,
        time_to_live=life,
        scheduled_enqueue_time_utc=message.not_before,
    )
    if life and (header := outgoing.raw_amqp_message.header):
        header.time_to_live = max(1, life // MILLISECOND)  # the library rounds down to seconds
    return outgoing
