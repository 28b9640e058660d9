"""What waits and what runs in a bucket, without those that wait behind many others of their kind."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, TypeVar

from core import agenda
from core.agenda import AgendaRow, Kind
from stores.orders import OrderStore

T = TypeVar("T")

PAGE = 100
"""How many are read at once, and how many of a lane are enough."""

LONG_PAGE = 1000
"""How many are read at once past orders that are not chosen: as many as a request returns."""


@dataclass
class BucketLook(Generic[T]):
    """One look into a bucket: at the first pending orders of each priority and need, and perhaps at what runs.

    Orders that wait for a later time stand behind those that may be claimed. A lane is read on while too little of it
    was chosen, for as long as its orders may be claimed: however many those are that are not chosen, they hide nobody.
    """

    store: OrderStore
    bucket: str
    due: datetime
    """An order may be claimed whose time has come by then."""
    choose: Callable[[AgendaRow], T | None]
    chosen: list[T] = field(default_factory=list)
    running: list[AgendaRow] = field(default_factory=list)
    _count: Counter[str] = field(default_factory=Counter)
    _in_time: str = ""
    """From which row key on those stand that run and are in time."""

    async def at_what_waits(self) -> list[T]:
        """Return what is chosen of the pending orders."""
        await self._read(*agenda.all_of(Kind.PENDING))
        return self.chosen

    async def at_all(self, in_time_from: datetime, most: int) -> None:
        """Look at what runs too: up to `most` orders, not counting what was due before that time."""
        self._in_time = agenda.in_time(in_time_from)[0]
        await self._read(*agenda.waiting_and_running(), most=most)

    async def _read(self, start: str, end: str, most: int = 0) -> None:
        size = PAGE
        while rows := await self.store.agenda(self.bucket, start, end, size):
            for row in rows:
                self._take(row)
            last, beyond = rows[-1], f"{rows[-1].key} "
            if len(rows) < size or len(self.running) > most:
                break
            if last.key.startswith(Kind.RUNNING):
                start, size = max(beyond, self._in_time), LONG_PAGE
            elif self._goes_on(last):
                start, size = beyond, LONG_PAGE
            else:
                await self._read_due_later(last)
                start, size = max(agenda.end_of_claim_lane(last), beyond), PAGE

    def _take(self, row: AgendaRow) -> None:
        if row.key.startswith(Kind.RUNNING):
            self.running += [row] if row.key >= self._in_time else []
        elif (choice := self.choose(row)) is not None:
            self.chosen.append(choice)
            self._count[agenda.end_of_claim_lane(row)] += 1

    def _goes_on(self, last: AgendaRow) -> bool:
        """Whether more of the lane is wanted."""
        return (
            agenda.may_be_claimed(last, self.due)
            and self._count[agenda.end_of_claim_lane(last)] < PAGE
        )

    async def _read_due_later(self, last: AgendaRow) -> None:
        """Read those of the lane whose chosen time has come, which stand behind all that never had one."""
        start, end = agenda.due_later(last, self.due)
        if last.key < start:
            for row in await self.store.agenda(self.bucket, start, end, PAGE):
                self._take(row)
