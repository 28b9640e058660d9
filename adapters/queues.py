"""Storage Queues: plain text, not base64 (host.json says `messageEncoding: none`)."""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from azure.core.exceptions import AzureError, ResourceExistsError
from azure.storage.queue import QueueMessage
from azure.storage.queue.aio import QueueClient
from pydantic import Base64Bytes, BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from adapters.failures import azure_errors
from core.errors import ConflictError, UnavailableError, UnknownMessageError
from core.poison import PoisonMessage
from core.ports import Clock

PAGE = 32
HOLD_SECONDS = 10
"""For how long others cannot see the messages among which one is looked for, if we die meanwhile."""

MOST_BYTES = 64 * 1024
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


class StorageQueue:
    """`TextQueue` on a Storage Queue."""

    def __init__(self, queue: Callable[[], QueueClient]) -> None:
        self._queue = queue

    async def put(self, text: str) -> None:
        """See `TextQueue.put`."""
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

    async def put(self, source: str, body: bytes, reason: str, correlation_id: str | None = None) -> None:
        """See `PoisonQueues.put`; a message that leaves no room for a reason is kept without one."""
        queue = self._of(source)
        text = poison_text(body, reason, self._clock().isoformat(), correlation_id)
        with azure_errors(f"storage queue {source}-poison"):
            try:
                with azure_errors("first try"):
                    await queue.send_message(text, time_to_live=FOREVER)
            except ConflictError:  # there is no such queue yet
                await _create(queue)
                await queue.send_message(text, time_to_live=FOREVER)

    async def peek(self, sources: Sequence[str]) -> list[PoisonMessage]:
        """See `PoisonQueues.peek`: up to 32 of each queue, which is what Azure shows of one."""
        return [message for source in sources for message in await self._peek(source)]

    async def _peek(self, source: str) -> list[PoisonMessage]:
        try:
            with azure_errors(f"storage queue {source}-poison"):
                return [_message(source, each) for each in await self._of(source).peek_messages(max_messages=PAGE)]
        except ConflictError:  # there is no such queue, because nothing was ever poison
            return []

    async def settle(self, source: str, message_id: str, act: Callable[[PoisonMessage], Awaitable[None]]) -> None:
        """See `PoisonQueues.settle`. A Storage Queue finds no message by its id: what is passed over is let go."""
        queue, passed_over, found = self._of(source), [], False
        try:
            with azure_errors(f"storage queue {source}-poison"):
                async for each in queue.receive_messages(messages_per_page=PAGE, visibility_timeout=HOLD_SECONDS):
                    if each.id == message_id:
                        found = True
                        await act(_message(source, each))
                        await queue.delete_message(each)
                        break
                    passed_over.append(each)
        except ConflictError as error:  # no such queue, or somebody else removed the message
            raise UnknownMessageError from error
        finally:
            await _let_go(queue, passed_over)
        if not found:
            raise UnknownMessageError

    def _of(self, source: str) -> QueueClient:
        return self._queue(f"{source}-poison")


async def _let_go(queue: QueueClient, messages: Sequence[QueueMessage]) -> None:
    """Show the messages again at once; those for which that fails show themselves after a while."""
    with suppress(AzureError):
        await asyncio.gather(*(queue.update_message(each, visibility_timeout=0) for each in messages))


def _message(source: str, stored: QueueMessage) -> PoisonMessage:
    """Read what a poison queue holds: our own wrapping, or a message as the functions host gave it up."""
    text = str(stored.content)
    try:
        wrapped = _Wrapped.model_validate_json(text)
    except ValidationError:
        kept_at = stored.inserted_on.isoformat() if stored.inserted_on else ""
        return PoisonMessage(source=source, message_id=stored.id, body=text.encode(), kept_at=kept_at)
    return PoisonMessage(
        source=source,
        message_id=stored.id,
        body=wrapped.original(),
        reason=wrapped.reason,
        kept_at=wrapped.received_at,
        correlation_id=wrapped.correlation_id,
    )


class _Wrapped(BaseModel):
    """A message with its reason, as `poison_text` writes it."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)
    reason: str
    received_at: str
    body: str | None = None
    body_base64: Base64Bytes | None = None
    correlation_id: str | None = None

    def original(self) -> bytes:
        """Return the message as it was received."""
        return self.body_base64 or (self.body or "").encode()


async def _create(queue: QueueClient) -> None:
    try:
        await queue.create_queue()
    except ResourceExistsError:
        return


def poison_text(body: bytes, reason: str, received_at: str, correlation_id: str | None = None) -> str:
    """Return what the poison queue keeps: message and reason as JSON, or the message alone if that is too long."""
    try:
        original, key = body.decode(), "body"
    except UnicodeDecodeError:
        original, key = base64.b64encode(body).decode(), "bodyBase64"
    correlation = {"correlationId": correlation_id} if correlation_id else {}
    wrapped = json.dumps({"reason": reason, "receivedAt": received_at, key: original} | correlation)
    return wrapped if len(wrapped) <= MOST_BYTES else original
