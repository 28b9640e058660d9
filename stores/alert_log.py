"""The alerts that reached the operators, in table `alerts`, newest first.

Each has a second row with its event id, so that the same event is kept once, even with another
time.
"""

from contextlib import suppress
from datetime import datetime

from core.alerts import Acknowledgement, Alert
from core.changes import Event
from core.errors import ConflictError
from core.keys import key_part, newest_first
from stores.outbox import EVENT
from stores.tables import Columns, Delete, Form, Insert, Replace, Table, columns_of, read_each

PARTITION = "alerts"
ACKNOWLEDGED = Form(
    Acknowledgement, by="AcknowledgedBy", at="AcknowledgedAt", note="AcknowledgedNote"
)


def alert_key(event: Event) -> str:
    """Return the row key of an alert."""
    return f"{newest_first(event.at)}|{key_part(event.event_id)}"


def id_key(event_id: str) -> str:
    """Return the key of the row that prevents a second record; it sorts before all alerts."""
    return f"!id|{key_part(event_id)}"


class AlertLog:
    """The alerts that reached the operators."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def record(self, alert: Event) -> None:
        """Keep an alert, unless one with the same event id is kept already."""
        rows = {
            alert_key(alert): EVENT.columns(alert),
            id_key(alert.event_id): {"EventId": alert.event_id},
        }
        with suppress(ConflictError):  # recorded already
            await self._table.submit(PARTITION, [Insert(key, row) for key, row in rows.items()])

    async def newest(self, limit: int, after: str = "") -> list[Alert]:
        """Return the last alerts, newest first; with `after`, those that follow that key."""
        found: list[Alert] = []
        while (wanted := limit - len(found)) > 0:  # an unreadable row does not shorten the list
            stored = await self._table.rows(PARTITION, max("0", f"{after} "), "~", wanted)
            found += read_each(stored, lambda row: _alert(row.key, columns_of(row)))
            if len(stored) < wanted:
                break
            after = stored[-1].key
        return found

    async def acknowledge(self, key: str, acknowledgement: Acknowledgement) -> bool:
        """Acknowledge an alert, unless it is acknowledged; return whether the alert exists."""
        stored = await self._table.get(PARTITION, key)
        if stored is None:
            return False
        known = columns_of(stored)
        if "AcknowledgedBy" not in known:
            taken = known | ACKNOWLEDGED.columns(acknowledgement)
            # A conflict means that another operator was first: alerts have no other changes.
            with suppress(ConflictError):
                await self._table.submit(PARTITION, [Replace(key, taken, stored.etag)])
        return True

    async def remove_before(self, time: datetime, most: int) -> int:
        """Remove up to `most` of the alerts that are older; return how many there were."""
        old = await self._table.rows(PARTITION, f"{newest_first(time)}~", "~", most)
        ids = [id_key(str(row.row.get("EventId"))) for row in old]
        keys = [row.key for row in old]
        for part in (ids, keys):  # an alert whose removal is cut short is found again
            await self._table.submit_each(PARTITION, [Delete(key) for key in part])
        return len(old)


def _alert(key: str, columns: Columns) -> Alert:
    acknowledged = ACKNOWLEDGED.record(columns) if "AcknowledgedBy" in columns else None
    return Alert(key=key, event=EVENT.record(columns), acknowledged=acknowledged)
