"""Storage Queues with plain text instead of base64 (`messageEncoding: none` in host.json)."""

import math
import re
from collections.abc import Callable
from datetime import datetime, timedelta

from azure.storage.queue.aio import QueueClient

from engine.azure.failures import azure_errors
from engine.domain.errors import InputFault, InvalidError, UnavailableError
from engine.time_limit import writing

NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""The characters that the XML of Storage Queues cannot hold."""

FOREVER = -1
"""A time to live without an end. The default is seven days."""


def check(text: str) -> None:
    """Raise `InvalidError` for characters that XML cannot hold.

    Azure refuses them. Azurite accepts them, but cannot deliver the message.
    """
    if found := NO_XML.search(text):
        facts = {"position": found.start() + 1, "character": f"U+{ord(found[0]):04X}"}
        raise InvalidError([InputFault("", "not-for-queues", facts)])


class StorageQueue:
    """`TextQueue` on a Storage Queue."""

    def __init__(self, queue: Callable[[], QueueClient]) -> None:
        self._queue = queue

    async def put(self, text: str, pause: timedelta | None = None) -> None:
        check(text)
        hidden = math.ceil(pause.total_seconds()) if pause else None
        with writing(), azure_errors("storage queue", UnavailableError):
            await self._queue().send_message(text, time_to_live=FOREVER, visibility_timeout=hidden)

    async def waiting(self) -> int:
        with azure_errors("storage queue", UnavailableError):
            return (await self._queue().get_queue_properties()).approximate_message_count or 0

    async def oldest(self) -> datetime | None:
        with azure_errors("storage queue", UnavailableError):
            heads = await self._queue().peek_messages(max_messages=1)
        return heads[0].inserted_on if heads else None
