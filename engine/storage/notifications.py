"""What is still to be sent to people, in table `alerts`: rows for each channel.

A row `!send|<channel>|…` is written with its alert, and removed once its digest was sent.
Partition `channels` has a row for each channel, which holds the digest that is being sent: a crash
repeats that digest, under the same id.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import AwareDatetime

from engine.decisions.transitions import OperatorEvent
from engine.domain.keys import key_part
from engine.storage.outbox import EVENT
from engine.storage.tables import (
    Columns,
    Delete,
    Insert,
    Operation,
    Replace,
    RowMapper,
    Stored,
    Table,
    columns_of,
    read_rows,
)

ALERTS = "alerts"
"""The partition of the alerts: what is to be sent is written in one transaction with its alert."""
PARTITION = "channels"


@dataclass(frozen=True, kw_only=True, slots=True)
class ChannelState:
    """How far a channel is."""

    channel: str
    """The name of the channel."""
    digest_id: str | None = None
    """The digest that is being sent."""
    digest_at: AwareDatetime | None = None
    """When this digest was made."""
    sending_until: AwareDatetime | None = None
    """Until when one run has the sending for itself."""
    keys: tuple[str, ...] = ()
    """The keys of the rows that the digest reports, as JSON."""
    outcome: str | None = None
    """How it ended (`sent` or `refused`), while its rows are still to be removed."""
    tries: int = 0
    """How many attempts to send it have failed."""
    not_before: AwareDatetime | None = None
    """The end of the pause before the next attempt."""
    failure: str | None = None
    """Why the last attempt failed."""
    ended_at: AwareDatetime | None = None
    """When the last digest was sent or refused."""
    messages: tuple[Mapping[str, Any], ...] = ()
    """The last messages, the newest first: `id`, `at`, `subject`, `entries`, `outcome`."""


STATE = RowMapper(ChannelState, texts=("keys", "messages"))

Known = tuple[ChannelState, str | None]
"""The state of a channel, and the ETag of its row; None if it has none."""


SEND = "!send|"


def known(channel: str, row: Stored | None) -> Known:
    """Return how far the channel with this row is; raises `UnreadableRowError`."""
    if row is None:
        return ChannelState(channel=channel), None
    return STATE.record(columns_of(row)), row.etag


def send_key(channel: str, event: OperatorEvent, *, of_condition: bool) -> str:
    """Return the key of the row by which a channel is to report an event.

    Conditions sort before other alerts, and each kind by its time: what waits longest goes first.
    """
    kind, second = 0 if of_condition else 1, int(event.at.timestamp())
    return f"{SEND}{channel}|{kind}|{second:012d}|{key_part(event.event_id)}"


def to_send(
    event: OperatorEvent, channels: Sequence[str], *, of_condition: bool
) -> dict[str, Columns]:
    """Return the rows that let the channels report an event, by key."""
    keys = [send_key(channel, event, of_condition=of_condition) for channel in channels]
    return {key: EVENT.columns(event) for key in keys}


class Notifications:
    """What the channels have still to send; every method raises `UnavailableError`."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def waiting(self, channel: str, limit: int) -> dict[str, OperatorEvent]:
        """Return up to `limit` events that the channel is to report, by key.

        An unreadable row is logged and left out.
        """
        prefix = f"{SEND}{channel}|"
        stored = await self._table.rows(ALERTS, prefix, f"{prefix}~", limit)
        read = read_rows(stored, lambda row: (row.key, EVENT.record(columns_of(row))))
        return dict(read)

    async def among(self, keys: Sequence[str]) -> dict[str, OperatorEvent]:
        """Return the events of those of these keys, sorted, that are still there."""
        if not keys:
            return {}
        stored = await self._table.rows(ALERTS, keys[0], f"{keys[-1]} ")
        read = read_rows(stored, lambda row: (row.key, EVENT.record(columns_of(row))))
        return {key: event for key, event in read if key in {*keys}}

    async def older(self, time: datetime, most: int) -> list[str]:
        """Return up to `most` keys of the rows of all channels whose event is older."""
        stored = await self._table.rows(ALERTS, SEND, f"{SEND}~")
        read = read_rows(stored, lambda row: (row.key, EVENT.record(columns_of(row)).at))
        return [key for key, at in read if at < time][:most]

    async def remove(self, keys: Sequence[str]) -> None:
        """Remove rows that were sent."""
        await self._table.submit_separately(ALERTS, [Delete(key) for key in keys])

    async def any_waiting(self) -> bool:
        """Return whether a channel has anything to report."""
        return bool(await self._table.rows(ALERTS, SEND, f"{SEND}~", 1))

    async def rows(self) -> dict[str, Stored]:
        """Return the rows that say how far the channels are, by channel."""
        return {row.key: row for row in await self._table.rows(PARTITION, "", "~")}

    async def put(self, state: ChannelState, etag: str | None) -> str | None:
        """Write how far a channel is, and return the ETag; raises `ConflictError`."""
        key, columns = state.channel, STATE.columns(state)
        operation: Operation = Replace(key, columns, etag) if etag else Insert(key, columns)
        (written,) = await self._table.submit(PARTITION, [operation])
        return written
