"""Reads the first pending orders of each claim lane of a bucket, and its running orders."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, TypeVar

from engine.domain import work_index
from engine.domain.work_index import IndexRow, WorkItemKind
from engine.storage.orders import OrderStore

T = TypeVar("T")

PAGE = 100
"""How many rows are read together, and how many chosen orders of a lane are enough."""

LONG_PAGE = 1000
"""How many rows are read together while orders are not chosen: the most that a request returns."""


@dataclass
class BucketReader(Generic[T]):
    """One reading of a bucket: the first pending orders of each lane, and perhaps running orders.

    Orders that wait for a later time come after orders that can be claimed. A lane is read until
    enough of its claimable orders are chosen. So orders that are not chosen never hide others.
    """

    store: OrderStore
    bucket: str
    due: datetime
    """An order with a start time can be claimed if that time is not after this one."""
    choose: Callable[[IndexRow], T | None]
    passed_over: tuple[datetime, datetime] | None = None
    """Claimable orders that have been ready since a time in this range need not be read. None reads
    all."""
    chosen: list[T] = field(default_factory=list)
    running: list[IndexRow] = field(default_factory=list)
    _count: Counter[str] = field(default_factory=Counter)
    _in_time: str = ""
    """Running orders with this row key or a later one are in time."""

    async def at_pending(self) -> list[T]:
        """Read the pending orders, and return the chosen ones."""
        await self._read(*work_index.all_of(WorkItemKind.PENDING))
        return self.chosen

    async def at_all(self, in_time_from: datetime, most: int) -> None:
        """Read pending orders, and up to `most` running orders due at `in_time_from` or later."""
        self._in_time = work_index.in_time(in_time_from)[0]
        await self._read(*work_index.waiting_and_running(), most=most)

    async def _read(self, start: str, end: str, most: int = 0) -> None:
        size = PAGE
        while rows := await self.store.work_items(self.bucket, start, end, size):
            for row in rows:
                self._take(row)
            last, beyond = rows[-1], f"{rows[-1].key} "
            if len(rows) < size or len(self.running) > most:
                break
            if last.key.startswith(WorkItemKind.RUNNING):
                start, size = max(beyond, self._in_time), LONG_PAGE
            elif self._needs_more(last):
                start, size = beyond, LONG_PAGE
            else:
                await self._read_beyond(last)
                start, size = max(work_index.end_of_claim_lane(last), beyond), PAGE

    def _take(self, row: IndexRow) -> None:
        if row.key.startswith(WorkItemKind.RUNNING):
            self.running += [row] if row.key >= self._in_time else []
        elif (choice := self.choose(row)) is not None:
            self.chosen.append(choice)
            self._count[work_index.end_of_claim_lane(row)] += 1

    def _needs_more(self, last: IndexRow) -> bool:
        """Whether the lane has more claimable orders while too few of them are chosen."""
        chosen = self._count[work_index.end_of_claim_lane(last)]
        wanted = work_index.may_be_claimed(last, self.due) and not self._is_passed_over(last)
        return wanted and chosen < PAGE

    def _is_passed_over(self, last: IndexRow) -> bool:
        if self.passed_over is None:
            return False
        first, end = (work_index.is_ready_after(last, time) for time in self.passed_over)
        return first and not end

    async def _read_beyond(self, last: IndexRow) -> None:
        """Continue in the lane behind the skipped orders, and at orders whose start time has come.

        Orders with a start time follow all orders without one.
        """
        ranges = [work_index.due_later(last, self.due)]
        if self.passed_over:
            ranges.append(work_index.ahead(last, self.passed_over[1]))
        for start, end in ranges:
            if last.key < start:
                for row in await self.store.work_items(self.bucket, start, end, PAGE):
                    self._take(row)
