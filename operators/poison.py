"""Poison messages: an operator looks at them, and puts them back or drops them (SUB-4, FLT-6)."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from core.errors import UnknownMessageError
from core.messages import BusMessage
from core.poison import PoisonMessage
from core.ports import Bus, PoisonQueues, TextQueue
from operators.rules import OperatorRequest

log = logging.getLogger(__name__)

MOST_CHARACTERS_SHOWN = 4000


@dataclass(frozen=True, kw_only=True)
class PoisonService:
    """What became unreadable on its way, in all queues of the app."""

    poison: PoisonQueues
    bus: Bus
    storage_queues: Mapping[str, TextQueue]
    bus_queues: Sequence[str]

    async def list(self) -> Mapping[str, Any]:
        """Return the messages that are kept, with their reasons."""
        kept = await self.poison.peek([*self.storage_queues, *self.bus_queues])
        return {"messages": [shown(message) for message in kept]}

    async def redrive(self, source: str, message_id: str, request: OperatorRequest) -> None:
        """Put a message back on its queue, and only then remove it: a crash in between sends it twice, never not."""
        self._check(source)
        await self.poison.settle(source, message_id, self._put_back)
        self._log("redriven", source, message_id, request)

    async def drop(self, source: str, message_id: str, request: OperatorRequest) -> None:
        """Remove a message for good; raises `UnknownMessageError`."""
        self._check(source)
        await self.poison.settle(source, message_id, _forget)
        self._log("dropped", source, message_id, request)

    def _check(self, source: str) -> None:
        if source not in self.storage_queues and source not in self.bus_queues:
            raise UnknownMessageError

    async def _put_back(self, message: PoisonMessage) -> None:
        body = message.body.decode(errors="replace")
        if queue := self.storage_queues.get(message.source):
            await queue.put(body)
            return
        again = BusMessage(
            queue=message.source,
            message_id=f"redriven-{uuid4()}",
            correlation_id=message.correlation_id or "",
            body=body,
        )
        await self.bus.send([again])

    def _log(self, what: str, source: str, message_id: str, request: OperatorRequest) -> None:
        """Keep who did it and why: no order's history has room for a message that belongs to none."""
        who = {"operator": request.operator, "note": request.note}
        log.warning("operators.poison_%s", what, extra={"queue": source, "message_id": message_id, **who})


async def _forget(message: PoisonMessage) -> None:
    del message


def shown(message: PoisonMessage) -> dict[str, Any]:
    """Return a message as the API shows it: what is no text with its bytes escaped, and not too much of it."""
    return {
        "queue": message.source,
        "id": message.message_id,
        "reason": message.reason or "it failed too often",
        "at": message.kept_at,
        "body": message.body.decode(errors="backslashreplace")[:MOST_CHARACTERS_SHOWN],
    }
