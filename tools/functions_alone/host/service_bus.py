"""The Service Bus trigger: one call for each message or each batch.

A return completes the messages, an exception abandons them.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from azure.servicebus import ServiceBusReceivedMessage
from azure.servicebus.aio import ServiceBusClient
from azure.servicebus.exceptions import ServiceBusError

from functions_alone.host.amqp_link import NEXT_FRAME_SECONDS, Link
from functions_alone.host.host_json import ServiceBusOptions
from functions_alone.host.index import ServiceBusTrigger
from functions_alone.host.invoke import FunctionCall
from functions_alone.host.outage import Outage, in_a_few_words, pause
from functions_alone.host.service_bus_data import many, single

IDLE_WAIT_SECONDS = 0.2
# While calls run, the socket is left this often to see whether one has ended; longer for slow ones.
SHORTEST_WAIT_SECONDS = 0.002
LONGEST_WAIT_SECONDS = 0.016

_log = logging.getLogger("functions_alone.host.service_bus")


@dataclass(kw_only=True, eq=False)
class RunningCall:
    """A running call, and the messages to settle when it ends. Times are monotonic seconds."""

    messages: Sequence[ServiceBusReceivedMessage]
    link: Link
    renew_at: float
    renew_until: float
    succeeded: bool = False


class ServiceBusListener:
    """Passes the messages of one queue to one function."""

    def __init__(
        self, *, trigger: ServiceBusTrigger, call: FunctionCall, options: ServiceBusOptions
    ) -> None:
        self._trigger = trigger
        self._call = call
        self._options = options
        self._outage = Outage(what=f"service bus queue {trigger.queue}")
        self._running: set[RunningCall] = set()
        self._ended: deque[RunningCall] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting_since: float | None = None
        self._wait = SHORTEST_WAIT_SECONDS

    async def run(self, stopping: asyncio.Event) -> None:
        """Serve the queue until the host stops and all running calls have ended."""
        while not stopping.is_set():
            try:
                await self._serve(stopping)
            except Exception as error:  # noqa: BLE001 - the SDK's transport raises errors of many kinds
                _log.debug("link lost", exc_info=error)
                await pause(stopping, self._outage.failed(error))
        await asyncio.gather(*self._tasks)
        self._forget_unsettled()

    async def _serve(self, stopping: asyncio.Event) -> None:
        async with ServiceBusClient.from_connection_string(
            self._trigger.connection, retry_total=0
        ) as client:
            # With a prefetch of its own the SDK keeps what arrives; how much may arrive is `allow`ed.
            receiver = client.get_queue_receiver(
                self._trigger.queue, prefetch_count=1, keep_alive=None
            )
            link = Link(receiver, on_undecodable=self._note_undecodable)
            try:
                await link.open()
                self._outage.recovered()
                while not stopping.is_set():
                    await self._step(link)
                await self._finish(link)
            finally:
                await link.close()

    async def _step(self, link: Link) -> None:
        _heed_cancellation()
        await self._settle_ended(link)
        await self._renew_locks(link)
        await link.allow(max(0, self._capacity() + self._options.prefetch_count - link.buffered))
        before = link.buffered
        await link.wait(self._seconds_to_wait(link))
        if link.buffered > before:
            self._wait = SHORTEST_WAIT_SECONDS
        await self._start(link)

    def _note_undecodable(self, error: Exception) -> None:
        queue, reason = self._trigger.queue, in_a_few_words(error)
        _log.warning("queue %s: a message cannot be decoded and is abandoned: %s", queue, reason)

    def _capacity(self) -> int:
        """Return how many messages could be handled now.

        As in Azure, a batch waits until the batch before it is settled.
        """
        if self._trigger.many:
            return 0 if self._running or self._ended else self._options.max_message_batch_size
        return self._options.max_concurrent_calls - len(self._running)

    async def _finish(self, link: Link) -> None:
        """Settle the calls that still run. No new calls are started."""
        await link.allow(0)
        while self._running or self._ended:
            await self._settle_ended(link)
            await self._renew_locks(link)
            await link.wait(SHORTEST_WAIT_SECONDS)

    def _seconds_to_wait(self, link: Link) -> float:
        if not self._running and not link.buffered:
            return IDLE_WAIT_SECONDS
        self._wait = min(self._wait * 1.5, LONGEST_WAIT_SECONDS)
        return self._wait

    async def _start(self, link: Link) -> None:
        if not self._trigger.many:
            for message in link.take(self._capacity()):
                self._begin(link, [message])
        elif link.buffered and self._capacity():
            await link.wait(NEXT_FRAME_SECONDS, self._options.max_message_batch_size)
            if self._is_enough(link.buffered):
                self._begin(link, link.take(self._options.max_message_batch_size))

    def _is_enough(self, count: int) -> bool:
        """Return whether a batch is large enough, or has waited long enough, to be handled."""
        now = time.monotonic()
        self._waiting_since = self._waiting_since or now
        waited = now - self._waiting_since
        if (
            count < self._options.min_message_batch_size
            and waited < self._options.max_batch_wait_time
        ):
            return False
        self._waiting_since = None
        return True

    def _begin(self, link: Link, messages: Sequence[ServiceBusReceivedMessage]) -> None:
        now = time.monotonic()
        # Azure does not renew the locks of a batch.
        renewal = 0.0 if self._trigger.many else self._options.max_auto_lock_renewal_duration
        running = RunningCall(
            messages=messages,
            link=link,
            renew_at=now + _half_lock(messages[0]),
            renew_until=now + renewal,
        )
        self._running.add(running)
        task = asyncio.create_task(self._handle(running))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _handle(self, running: RunningCall) -> None:
        try:
            make = many if self._trigger.many else single
            body, metadata = make(running.messages, binary=self._trigger.binary)
            running.succeeded = await self._call.succeeds(body, metadata)
        except Exception:  # noqa: BLE001 - a message that cannot be decoded is abandoned like any other
            _log.exception("queue %s: a message cannot be read", self._trigger.queue)
        finally:
            self._running.discard(running)
            self._ended.append(running)

    async def _settle_ended(self, link: Link) -> None:
        while self._ended:
            running = self._ended.popleft()
            self._wait = SHORTEST_WAIT_SECONDS
            for message in running.messages:
                await self._settle(link, running, message)

    async def _settle(
        self, link: Link, running: RunningCall, message: ServiceBusReceivedMessage
    ) -> None:
        if running.link is not link:
            self._not_settled(message, "the connection was lost meanwhile")
            return
        try:
            await link.settle(message, succeeded=running.succeeded)
        except (ServiceBusError, ValueError) as error:
            self._not_settled(message, in_a_few_words(error))

    def _not_settled(self, message: ServiceBusReceivedMessage, reason: str) -> None:
        queue = self._trigger.queue
        _log.warning("queue %s: message %s not settled: %s", queue, message.message_id, reason)

    def _forget_unsettled(self) -> None:
        for running in self._ended:
            for message in running.messages:
                self._not_settled(message, "the host stopped while the broker was away")

    async def _renew_locks(self, link: Link) -> None:
        now = time.monotonic()
        due = [r for r in self._running if r.renew_at <= now <= r.renew_until and r.link is link]
        for running in due:
            await self._renew(link, running)

    async def _renew(self, link: Link, running: RunningCall) -> None:
        try:
            await link.renew(running.messages[0])
            running.renew_at = time.monotonic() + _half_lock(running.messages[0])
        except ServiceBusError as error:
            running.renew_until = 0.0
            _log.warning(
                "queue %s: lock not renewed: %s", self._trigger.queue, in_a_few_words(error)
            )


def _heed_cancellation() -> None:
    """End this task if it was cancelled, because the SDK may have swallowed the cancellation."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _half_lock(message: ServiceBusReceivedMessage) -> float:
    """Return half of the remaining time of a lock, in seconds."""
    until = message.locked_until_utc
    return max(0.1, (until.timestamp() - time.time()) / 2) if until else 10.0
