"""Unreadable messages, in table `poison`: one partition for each queue, with the oldest first."""

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

from engine.domain.causes import Cause, Code
from engine.domain.errors import ConflictError, UnknownMessageError, UnreadableRowError
from engine.storage.tables import (
    Columns,
    Delete,
    Insert,
    RowMapper,
    Stored,
    Table,
    columns_of,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrival:
    """The identity of a message in its queue, which is the same in every delivery."""

    at: AwareDatetime
    number: str = ""
    """The id or sequence number that the queue assigned."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PoisonMessage:
    """One unreadable message."""

    source: str
    """The queue from which the message came. A redrive returns it to this queue."""
    message_id: str
    """The id of the message in its queue. The ids sort by time of arrival."""
    body: bytes
    """The content of the message, in base64."""
    reason: Cause
    """Why the message could not be processed: a code with facts, as JSON."""
    at: AwareDatetime
    """The time at which the message arrived on the queue."""
    correlation_id: str | None = None
    """The correlation id of a Service Bus message, if it had a readable one."""
    shortened: bool = False
    """Whether the body was too long and was cut. Such a message cannot be redriven."""


log = logging.getLogger(__name__)

MAX_BODY_BYTES = 330_000
"""The longest body that fits into a row as base64. Service Bus Standard allows 256 KiB."""

QUEUES = "-queues"
"""The partition with one row for each queue of which a message was kept."""

MAX_QUEUES = 1000

PART = 32_000
"""How many characters of the body one column holds, close to the limit of a column."""

MAX_REASON_CHARACTERS = 4000

FORM = RowMapper(PoisonMessage, texts=("reason",), correlation_id="CorrelationID")
ELSEWHERE = {"Source", "MessageId", "Body"}
"""The fields that are in the row's keys or in numbered columns."""


def _time_key(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}"


def id_of(source: str, body: bytes, arrival: Arrival) -> str:
    """Return the id of a message.

    It is always the same, so the message is kept once even after a crash.
    """
    digest = hashlib.sha256(f"{source}|{arrival.number}|".encode() + body).hexdigest()[:32]
    return f"{_time_key(arrival.at)}-{digest}"


class PoisonStore:
    """Keeps unreadable messages for an operator. Every method raises `UnavailableError`."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def put(
        self,
        source: str,
        body: bytes,
        reason: Cause,
        arrival: Arrival,
        correlation_id: str | None = None,
    ) -> None:
        """Keep a message of the queue `source`, unless it is already kept."""
        message = PoisonMessage(
            source=source,
            message_id=id_of(source, body, arrival),
            body=body[:MAX_BODY_BYTES],
            reason=_fitting(reason),
            at=arrival.at,
            correlation_id=correlation_id,
            shortened=len(body) > MAX_BODY_BYTES,
        )
        # First its queue: a message of a queue that no version names any more is found by it.
        await self._table.submit_separately(QUEUES, [Insert(source, {"At": arrival.at})])
        with suppress(ConflictError):  # it is kept already
            await self._table.submit(source, [Insert(message.message_id, _columns(message))])
        # Logged in both cases, since the process that kept it may have died before its log line.
        log.warning("poison.kept", extra={"queue": source})

    async def queues(self) -> list[str]:
        """Return each queue of which a message was kept, including queues of former agents."""
        return [row.key for row in await self._table.rows(QUEUES, "", "~", MAX_QUEUES)]

    async def page(self, source: str, limit: int, after: str = "") -> list[PoisonMessage]:
        """Return up to `limit` messages of a queue, oldest first.

        Start after the id `after` if given.
        """
        rows = await self._table.rows(source, f"{after} " if after else "", "~", limit)
        return [_message_or_fault(source, row) for row in rows]

    async def get(self, source: str, message_id: str) -> PoisonMessage:
        """Return a message. Raises `UnknownMessageError` if there is none with this id."""
        stored = await self._table.get(source, message_id)
        if stored is None:
            raise UnknownMessageError
        return _message_or_fault(source, stored)

    async def remove(self, source: str, message_id: str) -> None:
        """Remove a message if it still exists."""
        with suppress(ConflictError):
            await self._table.submit(source, [Delete(message_id)])

    async def remove_before(self, source: str, time: datetime, most: int) -> int:
        """Remove up to `most` messages of a queue that arrived before this time.

        Return their number.
        """
        old = await self._table.rows(source, "", _time_key(time), most)
        await self._table.submit_separately(source, [Delete(row.key) for row in old])
        return len(old)


def _fitting(reason: Cause) -> Cause:
    """Shorten the texts of the reason until a row can hold them.

    Lists may lose their last items.
    """
    left = MAX_REASON_CHARACTERS

    def cut(fact: Any) -> Any:
        nonlocal left
        if isinstance(fact, str):
            shown = fact[:left].encode(errors="replace").decode()
            left -= len(shown)
            return shown
        return [cut(part) for part in fact if left] if isinstance(fact, list) else fact

    return Cause(reason.code, {name: cut(fact) for name, fact in reason.facts.items()})


def _columns(message: PoisonMessage) -> Columns:
    columns = FORM.columns(message)
    return {name: columns[name] for name in columns.keys() - ELSEWHERE} | dict(_parts(message.body))


def _parts(body: bytes) -> Iterator[tuple[str, str]]:
    """Yield the columns of the body.

    The last column is never full, so a missing column is noticed.
    """
    text = base64.b64encode(body).decode()
    for number, start in enumerate(range(0, len(text) + 1, PART)):
        yield f"Body{number:02d}", text[start : start + PART]


def _message_or_fault(source: str, stored: Stored) -> PoisonMessage:
    """Return the message. If its row is unreadable, return one that can be listed and dropped."""
    try:
        return _message(source, stored)
    except (UnreadableRowError, LookupError, ValueError, TypeError) as fault:
        facts = {"row": stored.key, "error": type(fault).__name__}
        reason = Cause(Code.ROW_UNREADABLE, facts)
        at = datetime.fromtimestamp(0, UTC)
        left = _left_of_body(stored.row)
        return PoisonMessage(
            source=source, message_id=stored.key, body=left, reason=reason, at=at, shortened=True
        )


def _left_of_body(columns: Columns) -> bytes:
    """Return the readable part of a body. An erasure of personal data has to search it, too."""
    parts = (columns[name] for name in sorted(columns) if name.startswith("Body"))
    texts = (re.sub(r"[^A-Za-z0-9+/]", "", part) for part in parts if isinstance(part, str))
    return b"".join(base64.b64decode(text[: len(text) // 4 * 4]) for text in texts)


def _message(source: str, stored: Stored) -> PoisonMessage:
    columns = columns_of(stored)
    return FORM.record(
        {**columns, "Source": source, "MessageId": stored.key, "Body": _body(columns)}
    )


def _body(columns: Mapping[str, Any]) -> bytes:
    """Return the body. Raises ValueError or TypeError unless it is complete and unchanged."""
    found = {name: columns[name] for name in sorted(columns) if name.startswith("Body")}
    body = base64.b64decode("".join(found.values()), validate=True)
    if found != dict(_parts(body)):
        raise ValueError("the body is incomplete")
    return body
