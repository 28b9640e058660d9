"""The alerts that reached the operators, in table `alerts`, newest first.

A second row holds the event id of each alert. It ensures that an event is kept once, even if it
comes again with another time. All events of a condition are one alert, whose row has the latest
event.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from engine.alerts.events import Acknowledgement, Alert
from engine.decisions.transitions import OperatorEvent
from engine.domain.errors import ConflictError
from engine.domain.keys import key_part, newest_first
from engine.storage import notifications
from engine.storage.outbox import EVENT
from engine.storage.tables import (
    Columns,
    Delete,
    Insert,
    Operation,
    Put,
    Replace,
    RowMapper,
    Table,
    columns_of,
    read_rows,
)

PARTITION = notifications.ALERTS
ACKNOWLEDGED = RowMapper(
    Acknowledgement, by="AcknowledgedBy", at="AcknowledgedAt", note="AcknowledgedNote"
)

REMEMBERED = 10_000
"""How many recorded events a process remembers, to avoid a table operation for a repeat."""
CONFLICTS = 10
"""How often a row is read again after a conflict with another writer."""


class Revision(BaseModel):
    """The data by which an event updates the alert of its condition."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    alert: Annotated[str, Field(min_length=1, max_length=200)]
    revision: Annotated[int, Field(ge=1)]
    first: AwareDatetime

    @property
    def key(self) -> str:
        """The row key of the alert."""
        return f"{newest_first(self.first)}|{key_part(self.alert)}"


def revision_of(data: Mapping[str, object]) -> Revision | None:
    """Read the condition that an event belongs to. None if it belongs to none."""
    try:
        return Revision.model_validate(data)
    except ValidationError:
        return None


def alert_key(event: OperatorEvent) -> str:
    """Return the row key of an alert that belongs to no condition."""
    return f"{newest_first(event.at)}|{key_part(event.event_id)}"


def id_key(event_id: str) -> str:
    """Return the key of the row that prevents a second record of the event.

    It sorts before all alerts.
    """
    return f"!id|{key_part(event_id)}"


ACKNOWLEDGED_COLUMNS = {"AcknowledgedBy", "AcknowledgedAt", "AcknowledgedNote"}


class AlertLog:
    """The alerts that reached the operators."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._notifications = notifications.Notifications(table)
        self._recorded: dict[str, None] = {}

    async def record(self, alert: OperatorEvent, channels: Sequence[str] = ()) -> None:
        """Keep an alert, and queue it for the channels to people in the same transaction.

        An alert whose event id is already kept is ignored.
        """
        if alert.event_id in self._recorded:
            return
        revision = revision_of(alert.data)
        rows = notifications.to_send(alert, channels, of_condition=revision is not None)
        to_send = [Put(key, row) for key, row in rows.items()]
        if revision:
            await self._update(revision, alert, to_send)
        else:
            await self._insert(alert, to_send)
        self._recorded[alert.event_id] = None
        if len(self._recorded) > REMEMBERED:
            del self._recorded[next(iter(self._recorded))]

    async def _update(
        self, revision: Revision, alert: OperatorEvent, to_send: Sequence[Operation]
    ) -> None:
        """Write the alert of a condition, unless a later event has already written it."""
        columns = EVENT.columns(alert)
        for _ in range(CONFLICTS):
            stored = await self._table.get(PARTITION, revision.key)
            kept = columns_of(stored) if stored else {}
            known = revision_of(EVENT.record(kept).data) if kept else None
            if known and known.revision >= revision.revision:
                return
            taken = {name: kept[name] for name in ACKNOWLEDGED_COLUMNS & kept.keys()}
            row = columns | taken
            write = Replace(revision.key, row, stored.etag) if stored else Insert(revision.key, row)
            with suppress(ConflictError):
                await self._table.submit(PARTITION, [write, *to_send])
                return
        raise ConflictError

    async def _insert(self, alert: OperatorEvent, to_send: Sequence[Operation]) -> None:
        rows = {
            alert_key(alert): EVENT.columns(alert),
            id_key(alert.event_id): {"EventId": alert.event_id},
        }
        with suppress(ConflictError):  # recorded already
            inserts = [Insert(key, row) for key, row in rows.items()]
            await self._table.submit(PARTITION, [*inserts, *to_send])

    async def newest(self, limit: int, after: str = "") -> list[Alert]:
        """Return up to `limit` alerts, newest first. With `after`, start behind that row key."""
        found: list[Alert] = []
        while (wanted := limit - len(found)) > 0:  # an unreadable row does not shorten the list
            stored = await self._table.rows(PARTITION, max("0", f"{after} "), "~", wanted)
            found += read_rows(stored, lambda row: _alert(row.key, columns_of(row)))
            if len(stored) < wanted:
                break
            after = stored[-1].key
        return found

    async def acknowledge(self, key: str, word: Acknowledgement) -> Acknowledgement | None:
        """Acknowledge an alert, and return the acknowledgement that counts: the first one.

        Returns None if there is no such alert. Raises `ConflictError` after `CONFLICTS` conflicts.
        """
        for _ in range(CONFLICTS):  # another operator, or an event of the alert's condition
            stored = await self._table.get(PARTITION, key)
            if stored is None:
                return None
            known = columns_of(stored)
            if "AcknowledgedBy" in known:
                return ACKNOWLEDGED.record(known)
            taken = known | ACKNOWLEDGED.columns(word)
            with suppress(ConflictError):
                await self._table.submit(PARTITION, [Replace(key, taken, stored.etag)])
                return word
        raise ConflictError

    async def remove_before(self, time: datetime, most: int) -> int:
        """Remove up to `most` older alerts, and as many messages that channels did not send.

        Returns the number of removed rows.
        """
        old = await self._table.rows(PARTITION, f"{newest_first(time)}~", "~", most)
        ids = [id_key(str(row.row.get("EventId"))) for row in old]
        keys = [row.key for row in old]
        # A channel that is no longer configured never sends its messages.
        unsent = await self._notifications.older(time, most)
        for part in (ids, keys, unsent):  # an alert whose removal is cut short is found again
            await self._table.submit_separately(PARTITION, [Delete(key) for key in part])
        return len(old) + len(unsent)


def _alert(key: str, columns: Columns) -> Alert:
    acknowledged = ACKNOWLEDGED.record(columns) if "AcknowledgedBy" in columns else None
    return Alert(key=key, event=EVENT.record(columns), acknowledged=acknowledged)
