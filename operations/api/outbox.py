"""The work index of all buckets, read once for all calls at about the same time."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from engine.domain import work_index
from engine.domain.keys import LAST, bucket_of
from engine.domain.work_index import IndexRow, WorkItemKind
from engine.ports import Clock
from engine.storage.orders import OrderStore

MAX_COUNTED = 1000
"""The most rows of each kind that are read in each bucket."""


@dataclass(frozen=True, kw_only=True)
class WorkIndexReading:
    """A reading of the work index, which may be incomplete."""

    at: datetime
    """When the reading began."""
    rows: Mapping[WorkItemKind, Sequence[IndexRow]]
    whole: Set[tuple[str, WorkItemKind]]
    """The buckets and kinds of which all rows were read."""
    buckets: int
    """The number of buckets."""

    def more(self, kind: WorkItemKind) -> bool:
        """Whether there may be more rows of this kind than were read."""
        return sum(whole_kind == kind for _, whole_kind in self.whole) < self.buckets

    @cached_property
    def orders(self) -> Mapping[WorkItemKind, Mapping[str, IndexRow]]:
        """One row of each order, by kind and order id."""

        def by_order(rows: Sequence[IndexRow]) -> Mapping[str, IndexRow]:
            return {row.order_id: row for row in rows}

        return {kind: by_order(rows) for kind, rows in self.rows.items()}

    def is_over(self, kind: WorkItemKind, order_id: str) -> bool:
        """Whether the order certainly has no row of this kind."""
        return (bucket_of(order_id), kind) in self.whole and order_id not in self.orders[kind]


@dataclass(frozen=True, kw_only=True)
class OutboxReader:
    """Reads the work index, and keeps the last reading."""

    store: OrderStore
    clock: Clock
    _last: list[WorkIndexReading] = field(default_factory=list)

    async def recent(self, kept: timedelta) -> WorkIndexReading:
        """Return a reading younger than `kept`.

        A new one is made if necessary, with `read`'s errors. It may be older than an action that
        was just taken, perhaps by another host.
        """
        age = self.clock() - self._last[0].at if self._last else kept
        return self._last[0] if timedelta(0) <= age < kept else await self.read()

    async def read(self) -> WorkIndexReading:
        """Read the work index of all buckets that answer.

        Raises `ExceptionGroup` if none answers.
        """
        at, found = self.clock(), await self.store.read_buckets(self._pending_in)
        rows: dict[WorkItemKind, list[IndexRow]] = {kind: [] for kind in work_index.DUE}
        whole: set[tuple[str, WorkItemKind]] = set()
        for bucket, (read, more) in found.items():
            for kind in work_index.DUE:
                rows[kind] += (row for row in read if _kind(row) == kind)
                if kind not in more:
                    whole.add((bucket, kind))
        self._last[:] = [
            WorkIndexReading(at=at, rows=rows, whole=whole, buckets=len(self.store.buckets))
        ]
        return self._last[0]

    async def _pending_in(self, bucket: str) -> tuple[Sequence[IndexRow], Set[str]]:
        """Return the rows of a bucket, and the kinds that have more rows than these."""
        rows: list[IndexRow] = []
        more: set[str] = set()
        start, end = work_index.everything()
        while (
            len(page := await self.store.work_items(bucket, start, end, MAX_COUNTED)) == MAX_COUNTED
        ):
            # Usually one page holds all rows. A kind that the page cuts off is read again, alone.
            last = _kind(page[-1])
            if _kind(page[0]) == last:
                more.add(last)
                rows += page
                start = f"{last}|{LAST}"
            else:
                rows += (row for row in page if _kind(row) != last)
                start = f"{last}|"
        return [*rows, *page], more


def _kind(row: IndexRow) -> str:
    return row.key.partition("|")[0]
