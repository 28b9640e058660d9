"""The rate of calls to a remote service, shared by all instances, in table `agents`: one row for each agent.

The row holds when the next call may begin. An instance takes turns by moving it on, under its ETag; what waits for a
turn at the same time takes them together, so that a row costs few requests.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from adapters.coalesce import Coalescer
from adapters.operations import Insert, Operation, Replace
from adapters.rows import columns_of, entity
from adapters.tables import TableTransactions
from core.errors import ConflictError
from core.ports import Clock
from core.rates import turns

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
            free = columns_of(stored)["NextAt"] if stored else None
            taken, next_at = turns(free, self._clock(), spacing, [latest for _, latest in waiting])
            row = entity(PARTITION, agent, {"NextAt": next_at})
            write: Operation = Replace(row, stored.etag) if stored else Insert(row)
            try:
                await self._table.submit(PARTITION, [write])
            except ConflictError:  # another instance took turns first: look again
                continue
            return list(taken)
