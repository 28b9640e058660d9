"""Messages that nobody can read, in table `poison`: a partition for each queue, its messages oldest first."""

import base64
import hashlib
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import AwareDatetime

from core.errors import ConflictError, UnknownMessageError, UnreadableRowError
from stores.tables import Columns, Delete, Form, Insert, Stored, Table, columns_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrival:
    """What tells a message from every other of its queue, and every delivery of it tells alike."""

    at: AwareDatetime
    number: str = ""
    """The id or sequence number that its queue gave it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PoisonMessage:
    """One message that is kept."""

    source: str
    """The queue that it came from, and goes back to."""
    message_id: str
    """Names it among those of its queue, and sorts by the time at which it arrived."""
    body: bytes
    reason: str
    at: AwareDatetime
    """When it arrived on its queue."""
    correlation_id: str | None = None
    """Of a Service Bus message; None if it had none, or if that could not be told."""
    shortened: bool = False
    """Whether it was too long to be kept whole: it can be looked at, but not put back."""


log = logging.getLogger(__name__)

MAX_BODY_BYTES = 330_000
"""What fits into a row in base64: more than the 256 KiB that a message on Service Bus Standard may have."""

PART = 32_000
"""Characters of the body in one column, which could hold few more."""

MAX_REASON_CHARACTERS = 4000

FORM = Form(PoisonMessage, correlation_id="CorrelationID")
ELSEWHERE = {"Source", "MessageId", "Body"}
"""What of it stands in the keys of the row, or in columns of its own."""


def _time_key(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}"


def id_of(source: str, body: bytes, arrival: Arrival) -> str:
    """Return the id of a message, the same each time that it is kept: after a crash it is there once all the same."""
    digest = hashlib.sha256(f"{source}|{arrival.number}|".encode() + body).hexdigest()[:32]
    return f"{_time_key(arrival.at)}-{digest}"


class PoisonStore:
    """Where messages go that nobody can read, until an operator has looked at them. All raise `UnavailableError`."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def put(
        self,
        source: str,
        body: bytes,
        reason: str,
        arrival: Arrival,
        correlation_id: str | None = None,
    ) -> None:
        """Keep the message, which came from the queue `source`; the same one again changes nothing."""
        message = PoisonMessage(
            source=source,
            message_id=id_of(source, body, arrival),
            body=body[:MAX_BODY_BYTES],
            reason=reason[:MAX_REASON_CHARACTERS].encode(errors="replace").decode(),
            at=arrival.at,
            correlation_id=correlation_id,
            shortened=len(body) > MAX_BODY_BYTES,
        )
        with suppress(ConflictError):  # it is kept already
            await self._table.submit(source, [Insert(message.message_id, _columns(message))])
        log.warning(
            "poison.kept", extra={"queue": source}
        )  # then too: who kept it may have died before it said so

    async def page(self, source: str, limit: int, after: str = "") -> list[PoisonMessage]:
        """Return up to `limit` messages of a queue, oldest first; with `after`, those that follow that id."""
        rows = await self._table.rows(source, f"{after} " if after else "", "~", limit)
        return [_message_or_fault(source, row) for row in rows]

    async def get(self, source: str, message_id: str) -> PoisonMessage:
        """Return one message; raises `UnknownMessageError`."""
        stored = await self._table.get(source, message_id)
        if stored is None:
            raise UnknownMessageError
        return _message_or_fault(source, stored)

    async def remove(self, source: str, message_id: str) -> None:
        """Remove one message, unless somebody else has."""
        with suppress(ConflictError):
            await self._table.submit(source, [Delete(message_id)])

    async def remove_before(self, source: str, time: datetime, most: int) -> int:
        """Remove up to so many of the messages of a queue that arrived before; return how many there were."""
        old = await self._table.rows(source, "", _time_key(time), most)
        await self._table.submit_each(source, [Delete(row.key) for row in old])
        return len(old)


def _columns(message: PoisonMessage) -> Columns:
    columns = FORM.columns(message)
    return {name: columns[name] for name in columns.keys() - ELSEWHERE} | dict(_parts(message.body))


def _parts(body: bytes) -> Iterator[tuple[str, str]]:
    """Yield the columns that hold the body, whatever its bytes are; the last one is not full, so that none can lack."""
    text = base64.b64encode(body).decode()
    for number, start in enumerate(range(0, len(text) + 1, PART)):
        yield f"Body{number:02d}", text[start : start + PART]


def _message_or_fault(source: str, stored: Stored) -> PoisonMessage:
    """Return the message; one whose row nobody can read is shown all the same, and can be dropped."""
    try:
        return _message(source, stored)
    except (UnreadableRowError, LookupError, ValueError, TypeError) as fault:
        reason = f"its row cannot be read: {type(fault).__name__}"
        at = datetime.fromtimestamp(0, UTC)
        left = _left_of_body(stored.row)
        return PoisonMessage(
            source=source, message_id=stored.key, body=left, reason=reason, at=at, shortened=True
        )


def _left_of_body(columns: Columns) -> bytes:
    """Return what can be read of a body: who erases a customer's data has to find it here too."""
    parts = (columns[name] for name in sorted(columns) if name.startswith("Body"))
    texts = (re.sub(r"[^A-Za-z0-9+/]", "", part) for part in parts if isinstance(part, str))
    return b"".join(base64.b64decode(text[: len(text) // 4 * 4]) for text in texts)


def _message(source: str, stored: Stored) -> PoisonMessage:
    columns = columns_of(stored)
    return FORM.record(
        {**columns, "Source": source, "MessageId": stored.key, "Body": _body(columns)}
    )


def _body(columns: Mapping[str, Any]) -> bytes:
    """Return the body; raises ValueError or TypeError unless all of it is there, as it was kept."""
    found = {name: columns[name] for name in sorted(columns) if name.startswith("Body")}
    body = base64.b64decode("".join(found.values()), validate=True)
    if found != dict(_parts(body)):
        raise ValueError("the body is not there whole")
    return body
