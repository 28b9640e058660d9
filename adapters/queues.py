"""Storage Queues: plain text, not base64 (host.json says `messageEncoding: none`)."""

import asyncio
import logging
import random
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager

from azure.core.exceptions import ResourceExistsError
from azure.storage.queue import QueueMessage
from azure.storage.queue.aio import QueueClient

from adapters.failures import azure_errors
from adapters.poison_envelope import NO_XML, seal, unseal
from core.errors import ConflictError, InvalidError, UnavailableError, UnknownMessageError
from core.poison import PoisonMessage
from core.ports import Clock

log = logging.getLogger(__name__)

PAGE = 32
HOLD_SECONDS = 15
"""For how long others cannot see the messages among which one is looked for, if we die meanwhile."""

SEARCH_SECONDS = 10.0
"""Less than that, or the search would come by the same messages again."""

ACT_SECONDS = 60
"""For how long others cannot see a message with which something is being done."""

PAUSE_SECONDS = 0.5
"""At most, between two searches: by chance, so that those of two hosts get out of step."""

FOREVER = -1
"""Without it a message that nobody takes is dropped after seven days."""


@contextmanager
def unavailable_if_missing(what: str) -> Iterator[None]:
    """Translate what Azure raises; a queue that does not exist is of as little use as one that is away."""
    try:
        with azure_errors(what):
            yield
    except ConflictError as error:
        raise UnavailableError(str(error)) from error


def check(text: str) -> None:
    """Raise `InvalidError` for what XML cannot hold: Azure refuses it, and Azurite cannot give it out again."""
    if found := NO_XML.search(text):
        raise InvalidError([f"character {found.start() + 1} is U+{ord(found[0]):04X}, which no queue can hold"])


class StorageQueue:
    """`TextQueue` on a Storage Queue."""

    def __init__(self, queue: Callable[[], QueueClient]) -> None:
        self._queue = queue

    async def put(self, text: str) -> None:
        """See `TextQueue.put`."""
        check(text)
        with azure_errors("storage queue"):
            await self._queue().send_message(text, time_to_live=FOREVER)

    async def probe(self) -> None:
        """See `TextQueue.probe`."""
        with unavailable_if_missing("storage queue"):
            await self._queue().get_queue_properties()


class StoragePoisonQueues:
    """`PoisonQueues` on Storage Queues `<source>-poison`, which are created when first needed."""

    def __init__(self, queue: Callable[[str], QueueClient], clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._searching: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Two searches of one queue would hide its messages from each other."""

    async def put(self, source: str, body: bytes, reason: str, correlation_id: str | None = None) -> None:
        """See `PoisonQueues.put`; what is too long is kept as `poison_envelope` says."""
        queue = self._of(source)
        text = seal(body, reason, self._clock().isoformat(), correlation_id)
        with azure_errors(f"storage queue {source}-poison"):
            try:
                with azure_errors("first try"):
                    await queue.send_message(text, time_to_live=FOREVER)
            except ConflictError:  # there is no such queue yet
                await _create(queue)
                await queue.send_message(text, time_to_live=FOREVER)
        log.warning("poison.kept", extra={"queue": source})

    async def peek(self, sources: Sequence[str]) -> list[PoisonMessage]:
        """See `PoisonQueues.peek`: up to 32 of each queue, which is what Azure shows of one."""
        return [message for source in sources for message in await self._peek(source)]

    async def _peek(self, source: str) -> list[PoisonMessage]:
        try:
            with azure_errors(f"storage queue {source}-poison"):
                return [_message(source, each) for each in await self._of(source).peek_messages(max_messages=PAGE)]
        except ConflictError:  # there is no such queue, because nothing was ever poison
            return []

    async def count(self, sources: Sequence[str]) -> dict[str, int]:
        """See `PoisonQueues.count`."""
        counts = await asyncio.gather(*(self._count(source) for source in sources))
        return {source: count for source, count in zip(sources, counts, strict=True) if count}

    async def _count(self, source: str) -> int:
        try:
            with azure_errors(f"storage queue {source}-poison"):
                return (await self._of(source).get_queue_properties()).approximate_message_count or 0
        except ConflictError:  # there is no such queue, because nothing was ever poison
            return 0

    async def settle(self, source: str, message_id: str, act: Callable[[PoisonMessage], Awaitable[None]]) -> None:
        """See `PoisonQueues.settle`. If the message cannot be removed in the end, it is only seen once more."""
        queue = self._of(source)
        async with self._searching[source]:
            with unknown_if_missing(f"storage queue {source}-poison"):
                found = await _find(queue, message_id)
        try:
            await act(_message(source, found))
        except BaseException:
            await _let_go(queue, [found])
            raise
        with unknown_if_missing(f"storage queue {source}-poison"):
            await queue.delete_message(found)

    def _of(self, source: str) -> QueueClient:
        return self._queue(f"{source}-poison")


@contextmanager
def unknown_if_missing(what: str) -> Iterator[None]:
    """Translate what Azure raises; without its queue, or once somebody else removed it, a message is unknown."""
    try:
        with azure_errors(what):
            yield
    except ConflictError as error:
        raise UnknownMessageError from error


async def _find(queue: QueueClient, message_id: str) -> QueueMessage:
    """Return the message, which nobody else sees for a while.

    A Storage Queue finds no message by its id: all have to be looked through, and nobody else sees them meanwhile. So
    one that is not there may only be in other hands. Raises `UnknownMessageError`, or `UnavailableError` if it takes
    too long to be sure.
    """
    deadline = time.monotonic() + SEARCH_SECONDS
    while True:
        found, seen = await _look_through(queue, message_id, deadline)
        if found:
            await _see_again_in(queue, found, ACT_SECONDS)
            return found
        if time.monotonic() > deadline:
            raise UnavailableError("the messages of the queue are in other hands, or too many to be looked through")
        if ((await queue.get_queue_properties()).approximate_message_count or 0) <= seen:
            raise UnknownMessageError
        await asyncio.sleep(random.uniform(0, PAUSE_SECONDS))  # noqa: S311 - no secret


async def _look_through(queue: QueueClient, message_id: str, deadline: float) -> tuple[QueueMessage | None, int]:
    """Return the message, if it is there, and how many others were seen; those are let go."""
    found, others = None, list[QueueMessage]()
    try:
        pages = queue.receive_messages(messages_per_page=PAGE, visibility_timeout=HOLD_SECONDS).by_page()
        async for page in pages:
            async for each in page:  # all of a page are hidden, also those after the one that is looked for
                if each.id == message_id:
                    found = each
                else:
                    others.append(each)
            if found or time.monotonic() > deadline:
                break
    finally:
        await _let_go(queue, others)
    return found, len(others)


async def _let_go(queue: QueueClient, messages: Sequence[QueueMessage]) -> None:
    """Show the messages again at once; those for which that fails show themselves after a while."""
    await asyncio.gather(*(_see_again_in(queue, each, 0) for each in messages), return_exceptions=True)


async def _see_again_in(queue: QueueClient, message: QueueMessage, seconds: int) -> None:
    """Set from when on others see the message again; its content stays as it is."""
    renewed = await queue.update_message(message.id, pop_receipt=message.pop_receipt, visibility_timeout=seconds)
    message.pop_receipt = renewed.pop_receipt


def _message(source: str, stored: QueueMessage) -> PoisonMessage:
    kept_at = stored.inserted_on.isoformat() if stored.inserted_on else ""
    return unseal(source, stored.id, str(stored.content), kept_at)


async def _create(queue: QueueClient) -> None:
    try:
        await queue.create_queue()
    except ResourceExistsError:
        return
