"""The rate of calls to a remote service, shared by all instances, in table `agents`: one row for each agent.

The row holds when the next call may begin, and when that was written. An instance takes turns by moving it on, under
its ETag; what waits for a turn at the same time takes them together, so that a row costs few requests.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from adapters.coalesce import Coalescer
from adapters.operations import Insert, Operation, Replace
from adapters.rows import Columns, columns_of, entity
from adapters.tables import TableTransactions
from core.errors import ConflictError
from core.ports import Clock
from core.rates import free_from, turns

PARTITION = "rates"

Wanted = tuple[float, datetime]
"""Calls per second, and the latest time at which the call may begin."""


class TableCallRates:
    """`CallRates` on a table."""

    def __init__(self, table: TableTransactions, clock: Clock) -> None:
        self._table = table
        self._clock = clock
        self._waiting: Coalescer[Wanted, datetime | None] = Coalescer(self._take)

    async def next_call(self, agent: str, per_second: float, latest: datetime) -> datetime | None:
        """See `CallRates.next_call`."""
        return await self._waiting.submit(agent, (per_second, latest))

    async def _take(self, agent: str, waiting: Sequence[Wanted]) -> list[datetime | Exception | None]:
        spacing = timedelta(seconds=1 / waiting[0][0])
        while True:
            stored = await self._table.get(PARTITION, agent)
            now = self._clock()
            free = _free(columns_of(stored), now, spacing) if stored else None
            taken, next_at = turns(free, now, spacing, [latest for _, latest in waiting])
            row = entity(PARTITION, agent, {"NextAt": next_at, "At": now})
            write: Operation = Replace(row, stored.etag) if stored else Insert(row)
            try:
                await self._table.submit(PARTITION, [write])
            except ConflictError:  # another instance took turns first: look again
                continue
            return list(taken)


def _free(columns: Columns, now: datetime, spacing: timedelta) -> datetime:
    """Return when the next turn is free; a version that did not say when it wrote is believed to have the same time."""
    return free_from(columns["NextAt"], columns.get("At", now), now, spacing)
