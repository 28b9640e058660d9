"""The alerts that reached the operators, in table `alerts`, newest first."""

from datetime import UTC, datetime, timedelta

from adapters import tables
from adapters.operations import Insert
from adapters.rows import columns_of, entity
from adapters.tables import TableTransactions
from adapters.writes import event_columns, event_from, key_part
from core.changes import Event

PARTITION = "alerts"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FAR_FUTURE = 10**18


def newest_first(at: datetime) -> str:
    """Return the time as fixed-width digits of which the latest sorts first."""
    return f"{FAR_FUTURE - (at - EPOCH) // timedelta(microseconds=1):018d}"


class TableAlertLog:
    """`AlertLog` on a table."""

    def __init__(self, table: TableTransactions) -> None:
        self._table = table

    async def record(self, alert: Event) -> None:
        """See `AlertLog.record`."""
        key = f"{newest_first(alert.at)}|{key_part(alert.event_id)}"
        await tables.submit_each(self._table, PARTITION, [Insert(entity(PARTITION, key, event_columns(alert)))])

    async def newest(self, limit: int) -> list[Event]:
        """See `AlertLog.newest`."""
        stored = await self._table.rows(PARTITION, "0", "~", limit)
        return [event_from(columns_of(row)) for row in stored]
