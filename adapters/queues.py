"""Storage Queues: plain text, not base64 (host.json says `messageEncoding: none`)."""

import base64
import json
from collections.abc import Callable

from azure.core.exceptions import ResourceExistsError
from azure.storage.queue.aio import QueueClient

from adapters.failures import azure_errors
from core.errors import ConflictError
from core.ports import Clock

MOST_BYTES = 64 * 1024
FOREVER = -1
"""Without it a message that nobody takes is dropped after seven days."""


class StorageQueue:
    """`TextQueue` on a Storage Queue."""

    def __init__(self, queue: Callable[[], QueueClient]) -> None:
        self._queue = queue

    async def put(self, text: str) -> None:
        """See `TextQueue.put`."""
        with azure_errors("storage queue"):
            await self._queue().send_message(text, time_to_live=FOREVER)


class StoragePoisonQueues:
    """`PoisonQueues` on Storage Queues `<source>-poison`, which are created when first needed."""

    def __init__(self, queue: Callable[[str], QueueClient], clock: Clock) -> None:
        self._queue = queue
        self._clock = clock

    async def put(self, source: str, body: bytes, reason: str) -> None:
        """See `PoisonQueues.put`; a message that leaves no room for a reason is kept without one."""
        queue = self._queue(f"{source}-poison")
        text = poison_text(body, reason, self._clock().isoformat())
        with azure_errors(f"storage queue {source}-poison"):
            try:
                with azure_errors("first try"):
                    await queue.send_message(text, time_to_live=FOREVER)
            except ConflictError:  # there is no such queue yet
                await _create(queue)
                await queue.send_message(text, time_to_live=FOREVER)


async def _create(queue: QueueClient) -> None:
    try:
        await queue.create_queue()
    except ResourceExistsError:
        return


def poison_text(body: bytes, reason: str, received_at: str) -> str:
    """Return what the poison queue keeps: message and reason as JSON, or the message alone if that is too long."""
    try:
        original, key = body.decode(), "body"
    except UnicodeDecodeError:
        original, key = base64.b64encode(body).decode(), "bodyBase64"
    wrapped = json.dumps({"reason": reason, "receivedAt": received_at, key: original})
    return wrapped if len(wrapped) <= MOST_BYTES else original
