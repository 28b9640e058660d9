"""Service Bus: one pooled sender for each queue; what is sent to a queue at the same time travels as one batch."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver, ServiceBusSender
from azure.servicebus.exceptions import (
    MessageSizeExceededError,
    MessagingEntityDisabledError,
    MessagingEntityNotFoundError,
    ServiceBusAuthorizationError,
    ServiceBusQuotaExceededError,
)
from tenacity import AsyncRetrying, retry_if_exception_type, stop_before_delay, wait_exponential_jitter

from adapters.coalesce import Coalescer
from adapters.failures import OUTAGES, azure_errors
from core.errors import InvalidError, QueueRefusedError, UnavailableError
from core.messages import BusMessage

SEND_TIMEOUT_SECONDS = 15.0
PEEK_TIMEOUT_SECONDS = 3.0
REFUSALS = (
    MessagingEntityNotFoundError,
    MessagingEntityDisabledError,
    ServiceBusAuthorizationError,
    ServiceBusQuotaExceededError,
)
"""What is wrong with one queue, while the bus is there."""
MOST_IN_A_BATCH = 500
"""More in one batch gain nothing and hold up those that come after."""


class ServiceBus:
    """`Bus` on Azure Service Bus, its emulator, or the local broker."""

    def __init__(self, client: Callable[[], ServiceBusClient]) -> None:
        self._client = client
        self._senders: dict[str, ServiceBusSender] = {}
        self._peeking: ServiceBusReceiver | None = None
        """Kept open for the next probe; None while one is under way."""
        self._closing: set[asyncio.Task[None]] = set()
        self._sends: Coalescer[BusMessage | None, None] = Coalescer(self._flush)
        """None stands for nothing to send: it only opens the sender, in its turn like any message."""

    async def send(self, messages: Sequence[BusMessage]) -> None:
        """See `Bus.send`; a message that is too large for the queue raises `InvalidError`."""
        outcomes = await asyncio.gather(
            *(self._send_while_it_lives(message) for message in messages), return_exceptions=True
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def _send_while_it_lives(self, message: BusMessage) -> None:
        """Try again through a short outage: a request that is never sent costs its order a failure."""
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(UnavailableError),
            wait=wait_exponential_jitter(multiplier=0.1, max=2, jitter=0.2),
            stop=stop_before_delay(message.time_to_live or 0),
            reraise=True,
        )
        await retrying(self._sends.submit, message.queue, message)

    async def probe(self, queues: Sequence[str]) -> None:
        """See `Bus.probe`: opens the senders, so that the first message need not wait for that, and peeks once.

        An open sender does not show that the bus has gone away since; only an answer does.
        """
        await asyncio.gather(*(self._sends.submit(queue, None) for queue in queues))
        receiver, self._peeking = self._peeking or self._client().get_queue_receiver(queues[0]), None
        try:
            with azure_errors(f"queue {queues[0]}"):
                await receiver.peek_messages(max_message_count=1, timeout=PEEK_TIMEOUT_SECONDS)
        except UnavailableError:
            self._close_later(receiver)
            raise
        self._peeking = receiver

    async def close(self) -> None:
        """Close the senders."""
        for queue in list(self._senders):
            self._discard(queue)
        if self._peeking:
            self._close_later(self._peeking)
        await asyncio.gather(*self._closing)

    async def _flush(self, queue: str, waiting: Sequence[BusMessage | None]) -> list[Exception | None]:
        try:
            with azure_errors(f"queue {queue}"):
                return await self._send(self._sender(queue), waiting[:MOST_IN_A_BATCH])
        except UnavailableError as error:
            self._discard(queue)
            if isinstance(error.__cause__, REFUSALS):
                raise QueueRefusedError(str(error)) from error.__cause__
            raise
        except Exception:
            self._discard(queue)
            raise

    async def _send(self, sender: ServiceBusSender, waiting: Sequence[BusMessage | None]) -> list[Exception | None]:
        """Send the first messages, as many as fit into one batch."""
        batch = await sender.create_message_batch()
        taken = 0
        for message in waiting:
            try:
                if message:
                    batch.add_message(_outgoing(message))
            except MessageSizeExceededError:
                break
            taken += 1
        if not taken and waiting[0]:
            return [InvalidError([f"message {waiting[0].message_id} is too large for the queue"])]
        if len(batch):
            await sender.send_messages(batch, timeout=SEND_TIMEOUT_SECONDS)
        return [None] * taken

    def _sender(self, queue: str) -> ServiceBusSender:
        if queue not in self._senders:
            self._senders[queue] = self._client().get_queue_sender(queue)
        return self._senders[queue]

    def _discard(self, queue: str) -> None:
        """Forget a sender whose link may be broken; closing it can take a second, for which nobody waits."""
        if sender := self._senders.pop(queue, None):
            self._close_later(sender)

    def _close_later(self, link: ServiceBusSender | ServiceBusReceiver) -> None:
        task = asyncio.create_task(_close(link))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


async def _close(link: ServiceBusSender | ServiceBusReceiver) -> None:
    with suppress(*OUTAGES):
        async with asyncio.timeout(SEND_TIMEOUT_SECONDS):
            await link.close()


def _outgoing(message: BusMessage) -> ServiceBusMessage:
    return ServiceBusMessage(
        message.body,
        content_type="application/json",
        message_id=message.message_id,
        correlation_id=message.correlation_id,
        reply_to=message.reply_to,
        time_to_live=message.time_to_live,
        scheduled_enqueue_time_utc=message.not_before,
    )
