"""The last sweep, in table `agents`: one row, and one that says since when there should be any."""

from contextlib import suppress
from datetime import datetime

from adapters.tables.operations import Insert, Put, Table
from adapters.tables.rows import Columns, columns_of
from core.errors import ConflictError, UnavailableError
from core.sweeps import Sweep

PARTITION = "sweeps"
ROW = "last"
AWAITED = "awaited"


class TableSweepLog:
    """`SweepLog` on a table."""

    def __init__(self, table: Table[Columns]) -> None:
        self._table = table

    async def record(self, sweep: Sweep) -> None:
        """See `SweepLog.record`."""
        columns = {"At": sweep.at, "Instance": sweep.instance, "Recovered": sweep.recovered}
        await self._table.submit(PARTITION, [Put(ROW, columns)])

    async def last(self) -> Sweep | None:
        """See `SweepLog.last`."""
        stored = await self._table.get(PARTITION, ROW)
        if stored is None:
            return None
        columns = columns_of(stored)
        return Sweep(at=columns["At"], instance=columns["Instance"], recovered=columns["Recovered"])

    async def awaited_since(self, now: datetime) -> datetime:
        """See `SweepLog.awaited_since`."""
        with suppress(ConflictError):  # somebody has asked before
            await self._table.submit(PARTITION, [Insert(AWAITED, {"Since": now})])
        stored = await self._table.get(PARTITION, AWAITED)
        if stored is None:
            raise UnavailableError("a row that exists cannot be read")
        since: datetime = columns_of(stored)["Since"]
        return since
