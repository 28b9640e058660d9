"""The Storage Queue trigger: fetch, call, delete. After too many tries a message is poison."""

import asyncio
import base64
import binascii
import logging
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from azure.core.exceptions import AzureError, ResourceExistsError, ResourceNotFoundError
from azure.functions.meta import Datum
from azure.storage.queue import QueueMessage, StorageErrorCode
from azure.storage.queue.aio import QueueClient, QueueServiceClient

from functions_alone.host.bodies import of_one
from functions_alone.host.host_json import QueueOptions
from functions_alone.host.index import StorageQueueTrigger
from functions_alone.host.invoke import FunctionCall
from functions_alone.host.outage import Outage, in_a_few_words, pause

FIRST_POLL_SECONDS = 0.1
SETTLE_TRIES = 3
LOOKS_PER_LOCK = 20
"""How often in the time of a lock the host checks whether a lock must be renewed."""
MISSING_QUEUE_SECONDS = 0.5

_log = logging.getLogger("functions_alone.host.storage_queue")


@dataclass(kw_only=True, eq=False)
class LeasedMessage:
    """A message that this host works on. `receipt` changes with each renewal of its lock.

    `renew_after` is the time between renewals, in seconds.
    """

    message: QueueMessage
    receipt: str
    renew_after: float
    renew_at: float
    renewing: asyncio.Task[None] | None = None


class StorageQueueListener:
    """Passes the messages of one queue to one function. A message stays hidden for `lock_seconds`."""

    def __init__(
        self,
        *,
        trigger: StorageQueueTrigger,
        call: FunctionCall,
        options: QueueOptions,
        lock_seconds: int,
    ) -> None:
        self._trigger = trigger
        self._call = call
        self._options = options
        self._lock_seconds = lock_seconds
        self._read = _from_base64 if options.message_encoding == "base64" else _as_it_stands
        self._outage = Outage(what=f"storage queue {trigger.queue}")
        self._held: set[LeasedMessage] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._has_capacity = asyncio.Event()
        self._idle = 0.0
        self._queue: QueueClient
        self._poison: QueueClient

    async def run(self, stopping: asyncio.Event) -> None:
        """Serve the queue until the host stops and all running calls have ended."""
        service = QueueServiceClient.from_connection_string(
            self._trigger.connection,
            retry_total=0,
            connection_timeout=2,
            read_timeout=10,
            use_env_settings=False,
        )
        async with service, asyncio.TaskGroup() as group:
            self._queue = service.get_queue_client(self._trigger.queue)
            self._poison = service.get_queue_client(f"{self._trigger.queue}-poison")
            renewals = group.create_task(self._keep_locks())
            await self._poll(stopping)
            await asyncio.gather(*self._tasks)
            renewals.cancel()

    async def _poll(self, stopping: asyncio.Event) -> None:
        stopped = asyncio.create_task(stopping.wait())
        while not stopping.is_set():
            await self._wait_for_capacity(stopped)
            if not stopping.is_set() and (seconds := await self._start_what_is_there()):
                await pause(stopping, seconds)
        await stopped

    async def _start_what_is_there(self) -> float:
        """Fetch messages and begin their calls. Return the seconds to wait before the next fetch."""
        try:
            messages = await self._fetch()
        except ResourceNotFoundError as error:
            # The queue may be created at any moment; Azure looks on as if it were empty.
            return min(self._outage.failed(error), MISSING_QUEUE_SECONDS)
        except (AzureError, OSError) as error:
            return self._outage.failed(error)
        self._outage.recovered()
        for message in messages:
            self._start(message)
        longer = min(max(self._idle * 2, FIRST_POLL_SECONDS), self._options.max_polling_interval)
        self._idle = 0.0 if messages else longer
        return self._idle

    async def _wait_for_capacity(self, stopped: "asyncio.Task[bool]") -> None:
        """Wait until the number of running calls has fallen to the threshold."""
        while len(self._tasks) > self._options.threshold and not stopped.done():
            self._has_capacity.clear()
            freed = asyncio.create_task(self._has_capacity.wait())
            await asyncio.wait({freed, stopped}, return_when=asyncio.FIRST_COMPLETED)
            freed.cancel()

    async def _fetch(self) -> list[QueueMessage]:
        count = self._options.batch_size
        pages = self._queue.receive_messages(
            messages_per_page=count, max_messages=count, visibility_timeout=self._lock_seconds
        ).by_page()
        # One page is one request; iterating further would ask again.
        async for page in pages:
            return [message async for message in page]
        return []

    def _start(self, message: QueueMessage) -> None:
        half = self._lock_seconds / 2
        held = LeasedMessage(
            message=message,
            receipt=message.pop_receipt or "",
            renew_after=half,
            renew_at=time.monotonic() + half,
        )
        self._held.add(held)
        task = asyncio.create_task(self._handle(held))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._has_capacity.set()
        if not task.cancelled() and (error := task.exception()):
            _log.error("queue %s: a message was dropped", self._trigger.queue, exc_info=error)

    async def _handle(self, held: LeasedMessage) -> None:
        succeeded = await self._succeeds(held.message)
        self._held.discard(held)
        if held.renewing is not None:
            await held.renewing  # it changes the receipt that settling needs
        await self._settle(held, self._verdict(held.message, succeeded=succeeded))

    async def _succeeds(self, message: QueueMessage) -> bool | None:
        """Return whether the call succeeds, or None if the message must not be tried at all."""
        if (message.dequeue_count or 0) > self._options.max_dequeue_count:
            return None
        try:
            body = self._read(message.content or "")
        except (ValueError, binascii.Error):
            _log.warning("queue %s: message %s is not base64", self._trigger.queue, message.id)
            return None
        if not self._trigger.binary:
            try:
                body.decode()
            except UnicodeDecodeError as error:
                queue = self._trigger.queue
                _log.error("queue %s: message %s is no text: %s", queue, message.id, error)
                return False
        datum, metadata = of_one(body, _metadata(message), binary=self._trigger.binary)
        return await self._call.succeeds(datum, metadata)

    def _verdict(self, message: QueueMessage, *, succeeded: bool | None) -> "Settlement":
        if succeeded:
            return self._delete
        if self._trigger.queue.endswith("-poison"):
            return _leave_hidden
        last_try = (message.dequeue_count or 0) >= self._options.max_dequeue_count
        return self._move_to_poison if succeeded is None or last_try else self._retry_later

    async def _settle(self, held: LeasedMessage, settlement: "Settlement") -> None:
        queue, message = self._trigger.queue, held.message.id
        for attempt in range(SETTLE_TRIES):
            try:
                await settlement(held)
                break
            except ResourceNotFoundError:
                _log.warning("queue %s: message %s was taken over", queue, message)
                break
            except (AzureError, OSError) as error:
                reason = in_a_few_words(error)
            await asyncio.sleep(0.1 * 2**attempt)
        else:
            _log.warning("queue %s: message %s comes again: %s", queue, message, reason)

    async def _delete(self, held: LeasedMessage) -> None:
        await self._queue.delete_message(held.message.id, held.receipt)

    async def _retry_later(self, held: LeasedMessage) -> None:
        delay = round(self._options.visibility_timeout)
        await self._queue.update_message(held.message.id, held.receipt, visibility_timeout=delay)

    async def _move_to_poison(self, held: LeasedMessage) -> None:
        try:
            await self._poison.send_message(held.message.content)
        except ResourceNotFoundError:
            await self._create_poison_queue()
            await self._poison.send_message(held.message.content)
        _log.warning("message %s went to %s", held.message.id, self._poison.queue_name)
        await self._delete(held)

    async def _create_poison_queue(self) -> None:
        try:
            await self._poison.create_queue()
        except ResourceExistsError:
            return  # another host was faster

    async def _keep_locks(self) -> None:
        """Renew the locks of running messages at half their time.

        As in Azure, a renewal that failed is tried again sooner.
        """
        while True:
            await asyncio.sleep(self._lock_seconds / LOOKS_PER_LOCK)
            now = time.monotonic()
            for held in self._held:
                if held.renew_at <= now and (held.renewing is None or held.renewing.done()):
                    held.renewing = asyncio.create_task(self._renew(held))

    async def _renew(self, held: LeasedMessage) -> None:
        try:
            renewed = await self._queue.update_message(
                held.message.id, held.receipt, visibility_timeout=self._lock_seconds
            )
        except (AzureError, OSError) as error:
            reason = in_a_few_words(error)
            _log.warning("queue %s: lock not renewed: %s", self._trigger.queue, reason)
            held.renew_after = (
                math.inf if _is_lost(error) else max(held.renew_after / 2, self._lock_seconds / 10)
            )
        else:
            held.receipt = renewed.pop_receipt or held.receipt
            held.renew_after = self._lock_seconds / 2
        held.renew_at = time.monotonic() + held.renew_after


def _is_lost(error: Exception) -> bool:
    """Return whether the message is gone or another host has it, which no renewal can change."""
    code = getattr(error, "error_code", None)
    return isinstance(error, ResourceNotFoundError) or code == StorageErrorCode.POP_RECEIPT_MISMATCH


async def _leave_hidden(_: LeasedMessage) -> None:
    """Leave the message hidden until its lock expires. As in Azure, a poison queue has no poison queue."""


Settlement = Callable[[LeasedMessage], Awaitable[None]]


def _as_it_stands(content: str) -> bytes:
    return content.encode()


def _from_base64(content: str) -> bytes:
    return base64.b64decode(content, validate=True)


def _metadata(message: QueueMessage) -> dict[str, Datum]:
    return {
        "Id": Datum(message.id, "string"),
        "DequeueCount": Datum(message.dequeue_count, "int"),
        "PopReceipt": Datum(message.pop_receipt, "string"),
        "ExpirationTime": _time(message.expires_on),
        "InsertionTime": _time(message.inserted_on),
        "NextVisibleTime": _time(message.next_visible_on),
    }


def _time(value: datetime | None) -> Datum:
    return Datum(value.isoformat() if value else None, "string" if value else None)
