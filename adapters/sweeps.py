"""The last sweep, in table `agents`: one row."""

from adapters.operations import Put
from adapters.rows import columns_of, entity
from adapters.tables import TableTransactions
from core.sweeps import Sweep

PARTITION = "sweeps"
ROW = "last"


class TableSweepLog:
    """`SweepLog` on a table."""

    def __init__(self, table: TableTransactions) -> None:
        self._table = table

    async def record(self, sweep: Sweep) -> None:
        """See `SweepLog.record`."""
        columns = {"At": sweep.at, "Instance": sweep.instance, "Recovered": sweep.recovered}
        await self._table.submit(PARTITION, [Put(entity(PARTITION, ROW, columns))])

    async def last(self) -> Sweep | None:
        """See `SweepLog.last`."""
        stored = await self._table.get(PARTITION, ROW)
        if stored is None:
            return None
        columns = columns_of(stored)
        return Sweep(at=columns["At"], instance=columns["Instance"], recovered=columns["Recovered"])
