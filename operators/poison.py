"""Poison messages: an operator looks at them, and puts them back or drops them (SUB-4, FLT-6)."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from core.errors import RefusedError, UnknownMessageError
from core.messages import BusMessage
from core.poison import PoisonMessage
from core.ports import Bus, PoisonQueues, TextQueue
from operators.requests import OperatorRequest
from operators.views import View

log = logging.getLogger(__name__)

MOST_CHARACTERS_SHOWN = 4000


class PoisonView(View):
    """A message that nobody could read."""

    queue: str
    id: str
    reason: str
    at: str
    body: str


class PoisonList(View):
    """The first messages that are kept of each queue."""

    messages: list[PoisonView]
    counts: dict[str, int]
    """About how many are kept of each queue: more than 32 of one are not shown, but there."""


class Settled(View):
    """What was done with a message."""

    queue: str
    id: str
    status: str


@dataclass(frozen=True, kw_only=True)
class PoisonService:
    """What became unreadable on its way, in all queues of the app."""

    poison: PoisonQueues
    bus: Bus
    storage_queues: Mapping[str, TextQueue]
    bus_queues: Sequence[str]

    async def list(self) -> PoisonList:
        """Return the messages that are kept, with their reasons, and how many there are."""
        kept = await self.poison.peek(self._sources)
        return PoisonList(messages=[shown(message) for message in kept], counts=await self.count())

    async def count(self) -> dict[str, int]:
        """Return about how many are kept of each queue, of which any is."""
        return await self.poison.count(self._sources)

    @property
    def _sources(self) -> Sequence[str]:
        return [*self.storage_queues, *self.bus_queues]

    async def redrive(self, source: str, message_id: str, request: OperatorRequest) -> None:
        """Put a message back on its queue, and only then remove it: a crash in between sends it twice, never not.

        Raises `UnknownMessageError`, or `RefusedError` if it cannot be put back as it was.
        """
        self._check(source)

        async def put_back(message: PoisonMessage) -> None:
            await self._put_back(message)
            _log("redriven", source, message_id, request)  # also if it cannot be removed: it was sent

        await self.poison.settle(source, message_id, put_back)

    async def drop(self, source: str, message_id: str, request: OperatorRequest) -> None:
        """Remove a message for good; raises `UnknownMessageError`."""
        self._check(source)
        await self.poison.settle(source, message_id, _forget)
        _log("dropped", source, message_id, request)

    def _check(self, source: str) -> None:
        if source not in self.storage_queues and source not in self.bus_queues:
            raise UnknownMessageError

    async def _put_back(self, message: PoisonMessage) -> None:
        body = text_of(message)
        if queue := self.storage_queues.get(message.source):
            await queue.put(body)
            return
        again = f"redriven-{uuid4()}"
        correlation_id = message.correlation_id or again
        await self.bus.send(
            [BusMessage(queue=message.source, message_id=again, correlation_id=correlation_id, body=body)]
        )


async def _forget(message: PoisonMessage) -> None:
    del message


def _log(what: str, source: str, message_id: str, request: OperatorRequest) -> None:
    """Keep who did it and why: no order's history has room for a message that belongs to none."""
    who = {"operator": request.operator, "note": request.note}
    log.warning("operators.poison_settled", extra={"action": what, "queue": source, "message_id": message_id, **who})


def text_of(message: PoisonMessage) -> str:
    """Return the body as it was received; raises `RefusedError` if it would not be the same message any more."""
    if message.shortened:
        raise RefusedError("the message was too long to be kept whole: it can only be dropped")
    try:
        return message.body.decode()
    except UnicodeDecodeError as error:
        raise RefusedError("the message is no text: nobody could read it, it can only be dropped") from error


def shown(message: PoisonMessage) -> PoisonView:
    """Return a message as the API shows it: what is no text with its bytes escaped, and not too much of it."""
    return PoisonView(
        queue=message.source,
        id=message.message_id,
        reason=message.reason or "it failed too often",
        at=message.kept_at,
        body=message.body.decode(errors="backslashreplace")[:MOST_CHARACTERS_SHOWN],
    )
