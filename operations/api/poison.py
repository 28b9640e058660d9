"""Poison messages: operators read them, and redrive or drop them (SUB-4, FLT-6)."""

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Annotated

from pydantic import BeforeValidator, Field

from engine.concurrency import run_all
from engine.domain.causes import Cause, Code
from engine.domain.encodings import readable
from engine.domain.errors import RefusedError, UnknownMessageError
from engine.domain.messages import DEAD_LETTERS, BusMessage
from engine.domain.personal_data import holds_address
from engine.features.external_events.callback_urls import masked
from engine.http.models import View
from engine.ports import Bus, TextQueue
from engine.storage.poison import PoisonMessage, PoisonStore
from engine.words.causes import words_of
from operations.api.requests import KEY, OperatorRequest, PoisonPage
from operations.api.views import Count, cut

log = logging.getLogger(__name__)

MAX_CHARACTERS_SHOWN = 4000
MAX_COUNTED = 100
"""The most messages of each queue that are counted."""

MAX_REMOVED = 1000
PAGE = 100


def source_of(dead_letter_source: str | None, queues: Iterable[str]) -> str:
    """Return the queue that forwarded a dead letter, or `DEAD_LETTERS` if it is unknown.

    Service Bus names the queue, or the dead-letter queue below it. Case does not matter in names.
    """
    name = (dead_letter_source or "").lower().removesuffix("/$deadletterqueue")
    return next((queue for queue in queues if queue.lower() == name), DEAD_LETTERS)


def shown(body: bytes) -> str:
    """Return a body as the API shows it: shortened, without base64, binary parts escaped."""
    return _text(body)[:MAX_CHARACTERS_SHOWN]


def is_cut(body: bytes) -> bool:
    """Whether the API shows only the beginning of a body."""
    return len(_text(body)) > MAX_CHARACTERS_SHOWN


def _text(body: bytes) -> str:
    return masked(readable(body))


class PoisonView(View):
    """A poison message."""

    queue: Annotated[str, Field(validation_alias="source")]
    id: Annotated[str, Field(validation_alias="message_id")]
    reason: Annotated[str, BeforeValidator(words_of)]
    at: datetime
    body: Annotated[str, BeforeValidator(shown)]
    cut: Annotated[bool, Field(validation_alias="body"), BeforeValidator(is_cut)]
    """Whether the message is longer than `body` shows."""


class PoisonList(View):
    """One page of the messages that are kept, of all queues, oldest first."""

    messages: list[PoisonView]
    counts: dict[str, Count]
    """The number of kept messages, for each queue that has any."""
    continuation: str | None = None
    """The value that returns the next page; null on the last page."""


class PoisonName(View):
    """Where a message is kept."""

    queue: str
    id: str


class Settled(View):
    """The outcome of an action on a message."""

    http_status = 202  # as with an order
    queue: str
    id: str
    status: str


@dataclass(frozen=True, kw_only=True)
class PoisonService:
    """The poison messages of all queues of the app."""

    poison: PoisonStore
    bus: Bus
    storage_queues: Mapping[str, TextQueue]
    bus_queues: Sequence[str]

    async def list(self, page: PoisonPage) -> PoisonList:
        """List the poison messages with their reasons, oldest first."""
        found = await run_all(
            self.poison.page(queue, page.limit + 1, page.continuation or "")
            for queue in await self._queues()
        )
        kept = sorted(chain.from_iterable(found), key=lambda message: message.message_id)
        messages, continuation = cut(kept, page.limit, lambda message: message.message_id)
        return PoisonList(
            messages=[PoisonView.model_validate(message) for message in messages],
            counts=await self.count(),
            continuation=continuation,
        )

    async def count(self) -> dict[str, Count]:
        """Return the number of messages of each queue that has any, counted up to `MAX_COUNTED`."""
        queues = await self._queues()
        pages = await run_all(self.poison.page(queue, MAX_COUNTED + 1) for queue in queues)
        return {
            queue: Count(count=min(len(found), MAX_COUNTED), at_least=len(found) > MAX_COUNTED)
            for queue, found in zip(queues, pages, strict=True)
            if found
        }

    @property
    def _own(self) -> Sequence[str]:
        return [*self.storage_queues, *self.bus_queues, DEAD_LETTERS]

    async def _queues(self) -> Sequence[str]:
        """Return the queues of the app, and queues of former agents."""
        return list(dict.fromkeys([*self._own, *await self.poison.queues()]))

    async def redrive(self, queue: str, message_id: str, request: OperatorRequest) -> Settled:
        """Return a message to its queue; it is removed afterwards, so that a crash loses nothing.

        A crash in between, or a second operator, may send the message twice. It takes effect once.
        A submission names its order, and an alert its event. A request and a reply name the step
        and the attempt, and the service gets the same idempotency key. A wake-up itself changes
        nothing. On Service Bus, both copies also have the same message id.

        Raises `UnknownMessageError`, or `RefusedError` if the message cannot be returned unchanged.
        """
        message = await self._kept(queue, message_id)
        await self._put_back(message, text_of(message))
        _log("redriven", queue, message_id, request)  # it was sent, even if its removal fails
        await self.poison.remove(queue, message_id)
        return Settled(queue=queue, id=message_id, status="redriven")

    async def _kept(self, queue: str, message_id: str) -> PoisonMessage:
        """Return a message of any queue. Raises `UnknownMessageError`."""
        if queue not in await self._queues() or not re.fullmatch(KEY, message_id):
            raise UnknownMessageError
        return await self.poison.get(queue, message_id)

    async def drop(self, queue: str, message_id: str, request: OperatorRequest) -> Settled:
        """Remove a poison message; raises `UnknownMessageError`."""
        await self._kept(queue, message_id)
        # Logged first: a removal whose answer is lost may have succeeded.
        _log("dropped", queue, message_id, request)
        await self.poison.remove(queue, message_id)
        return Settled(queue=queue, id=message_id, status="dropped")

    async def remove_before(self, time: datetime) -> int:
        """Remove up to `MAX_REMOVED` messages of each queue that arrived before this time.

        Returns how many were removed.
        """
        return sum(
            await run_all(
                self.poison.remove_before(queue, time, MAX_REMOVED)
                for queue in await self._queues()
            )
        )

    async def forget(self, order_id: str) -> None:
        """Remove the messages that name an order.

        An agent's request may hold personal data.
        """
        for source in await self._queues():
            after = ""
            while page := await self.poison.page(source, PAGE, after):
                naming = [message for message in page if _names(message.body, order_id)]
                await run_all(self.poison.remove(source, message.message_id) for message in naming)
                after = page[-1].message_id

    async def naming(self, email: str) -> Sequence[PoisonName]:
        """Return the messages that contain an address, in any JSON form.

        Messages that were cut are included, because they may contain it. So are messages in base64,
        as other clients send them.
        """
        found: list[PoisonName] = []
        for queue in await self._queues():
            after = ""
            while page := await self.poison.page(queue, PAGE, after):
                found += [
                    PoisonName(queue=queue, id=message.message_id)
                    for message in page
                    if message.shortened or holds_address(message.body, email)
                ]
                after = page[-1].message_id
        return found

    async def _put_back(self, message: PoisonMessage, text: str) -> None:
        if queue := self.storage_queues.get(message.source):
            await queue.put(text)
            return
        if message.source not in self.bus_queues:
            raise RefusedError(Cause(Code.MESSAGE_OF_NO_QUEUE))
        message_id = f"redriven-{message.message_id}"
        again = BusMessage(
            queue=message.source,
            message_id=message_id,
            correlation_id=message.correlation_id or message_id,
            body=text,
        )
        await self.bus.send([again])


def _names(body: bytes, order_id: str) -> bool:
    """Whether a message names the order, in any encoding."""
    return order_id.encode() in body or order_id in readable(body)


def _log(what: str, source: str, message_id: str, request: OperatorRequest) -> None:
    """Log who acted and why. The message may belong to no order, and so to no history."""
    who = {"operator": request.operator, "note": request.note}
    log.warning(
        "operators.poison_settled",
        extra={"action": what, "queue": source, "message_id": message_id, **who},
    )


def text_of(message: PoisonMessage) -> str:
    """Return the body as it was received.

    Raises `RefusedError` if it is not kept as complete text.
    """
    if message.shortened:
        raise RefusedError(Cause(Code.MESSAGE_CUT))
    try:
        return message.body.decode()
    except UnicodeDecodeError as error:
        raise RefusedError(Cause(Code.MESSAGE_NOT_TEXT)) from error
