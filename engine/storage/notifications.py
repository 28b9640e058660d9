"""The messages that are still to be sent to people, in table `alerts`: rows for each channel.

A row `!send|<channel>|…` is written together with its alert, and removed when its digest was sent.
Partition `channels` has one row for each channel, with the digest that is being sent. After a
crash, this digest is sent again under the same id.
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
"""The partition of the alerts. It also holds the messages to send, for a common transaction."""
PARTITION = "channels"


@dataclass(frozen=True, kw_only=True, slots=True)
class ChannelState:
    """The progress of a channel."""

    channel: str
    """The name of the channel."""
    digest_id: str | None = None
    """The id of the digest that is being sent."""
    digest_at: AwareDatetime | None = None
    """The time at which this digest was made."""
    sending_until: AwareDatetime | None = None
    """The time until which one run has reserved the channel, so that no other run sends."""
    keys: tuple[str, ...] = ()
    """The keys of the rows that the digest reports, as JSON."""
    outcome: str | None = None
    """The outcome of the digest (`sent` or `refused`) until its rows are removed."""
    tries: int = 0
    """The number of failed attempts to send the digest."""
    not_before: AwareDatetime | None = None
    """The end of the pause before the next attempt to send the digest."""
    failure: str | None = None
    """The reason why the last attempt failed."""
    ended_at: AwareDatetime | None = None
    """The time at which the last digest was sent or refused."""
    messages: tuple[Mapping[str, Any], ...] = ()
    """The latest messages, newest first, as JSON. Each has `id`, `at`, `subject`, `entries` and
    `outcome`."""


STATE = RowMapper(ChannelState, texts=("keys", "messages"))

Known = tuple[ChannelState, str | None]
"""The state of a channel, with the ETag of its row. None if there is no row."""


SEND = "!send|"


def known(channel: str, row: Stored | None) -> Known:
    """Read the state of a channel from its row. Raises `UnreadableRowError`."""
    if row is None:
        return ChannelState(channel=channel), None
    return STATE.record(columns_of(row)), row.etag


def send_key(channel: str, event: OperatorEvent, *, of_condition: bool) -> str:
    """Return the key of the row that makes a channel report an event.

    Conditions sort before other alerts. Within each kind the oldest event comes first, and is sent
    first.
    """
    kind, second = 0 if of_condition else 1, int(event.at.timestamp())
    return f"{SEND}{channel}|{kind}|{second:012d}|{key_part(event.event_id)}"


def to_send(
    event: OperatorEvent, channels: Sequence[str], *, of_condition: bool
) -> dict[str, Columns]:
    """Return the rows that make the channels report an event, by key."""
    keys = [send_key(channel, event, of_condition=of_condition) for channel in channels]
    return {key: EVENT.columns(event) for key in keys}


class Notifications:
    """The messages that the channels still have to send. Every method raises `UnavailableError`."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def waiting(self, channel: str, limit: int) -> dict[str, OperatorEvent]:
        """Return up to `limit` events that the channel has to report, by key.

        An unreadable row is logged and left out.
        """
        prefix = f"{SEND}{channel}|"
        stored = await self._table.rows(ALERTS, prefix, f"{prefix}~", limit)
        read = read_rows(stored, lambda row: (row.key, EVENT.record(columns_of(row))))
        return dict(read)

    async def among(self, keys: Sequence[str]) -> dict[str, OperatorEvent]:
        """Return the events of those keys that still exist. `keys` must be sorted."""
        if not keys:
            return {}
        stored = await self._table.rows(ALERTS, keys[0], f"{keys[-1]} ")
        read = read_rows(stored, lambda row: (row.key, EVENT.record(columns_of(row))))
        return {key: event for key, event in read if key in {*keys}}

    async def older(self, time: datetime, most: int) -> list[str]:
        """Return up to `most` keys, of all channels, of events that are older than this time."""
        stored = await self._table.rows(ALERTS, SEND, f"{SEND}~")
        read = read_rows(stored, lambda row: (row.key, EVENT.record(columns_of(row)).at))
        return [key for key, at in read if at < time][:most]

    async def remove(self, keys: Sequence[str]) -> None:
        """Remove the rows of events that were sent."""
        await self._table.submit_separately(ALERTS, [Delete(key) for key in keys])

    async def any_waiting(self) -> bool:
        """Whether any channel has something to report."""
        return bool(await self._table.rows(ALERTS, SEND, f"{SEND}~", 1))

    async def rows(self) -> dict[str, Stored]:
        """Return the state rows of the channels, by channel."""
        return {row.key: row for row in await self._table.rows(PARTITION, "", "~")}

    async def put(self, state: ChannelState, etag: str | None) -> str | None:
        """Write the state of a channel, and return its ETag. Raises `ConflictError`."""
        key, columns = state.channel, STATE.columns(state)
        operation: Operation = Replace(key, columns, etag) if etag else Insert(key, columns)
        (written,) = await self._table.submit(PARTITION, [operation])
        return written
