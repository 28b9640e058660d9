"""What is owed to orders, in all buckets: read once for all who ask at about the same time."""

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime

from core import agenda
from core.agenda import AgendaRow, Kind
from core.gathering import run_all
from core.keys import LAST, bucket_of
from core.ports import Clock
from stores.orders import OrderStore

MAX_COUNTED = 1000
"""Of each kind in each bucket: more are not counted, only said to be there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rows:
    """The rows of one kind."""

    rows: Sequence[AgendaRow]
    more: bool = False
    """Whether there are more, which were not read."""

    def orders(self) -> Set[str]:
        """Return the orders that they are about."""
        return {row.order_id for row in self.rows}


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """What was owed at a time."""

    at: datetime
    """When it began to be read."""
    rows: Mapping[Kind, Rows]
    buckets: Collection[str]
    """In which it was read."""

    def is_over(self, kind: Kind, order_id: str) -> bool:
        """Whether it is certain that nothing of this kind is owed to the order."""
        of_kind = self.rows[kind]
        return not of_kind.more and bucket_of(order_id) in self.buckets and order_id not in of_kind.orders()


@dataclass(frozen=True, kw_only=True)
class Owed:
    """Reads the agenda, and remembers what was read last."""

    store: OrderStore
    clock: Clock
    _last: list[Look] = field(default_factory=list)

    async def look(self, after: datetime) -> Look:
        """Return what is owed, as it is read after that time; raises `UnavailableError`."""
        if not self._last or self._last[0].at <= after:
            self._last[:] = [await self._look()]
        return self._last[0]

    async def _look(self) -> Look:
        at = self.clock()
        buckets = await run_all(self._owed_in(bucket) for bucket in self.store.buckets)
        rows = {
            kind: Rows(
                rows=[row for rows, _ in buckets for row in rows if _kind(row) == kind],
                more=any(kind in more for _, more in buckets),
            )
            for kind in Kind
        }
        return Look(at=at, rows=rows, buckets=self.store.buckets)

    async def _owed_in(self, bucket: str) -> tuple[Sequence[AgendaRow], Set[str]]:
        """Read all rows, and which kinds have more: mostly one page is all. A kind that it cuts off is read anew."""
        rows: list[AgendaRow] = []
        more: set[str] = set()
        start, end = agenda.everything()
        while len(page := await self.store.agenda(bucket, start, end, MAX_COUNTED)) == MAX_COUNTED:
            last = _kind(page[-1])
            if _kind(page[0]) == last:
                more.add(last)
                rows += page
                start = f"{last}|{LAST}"
            else:
                rows += (row for row in page if _kind(row) != last)
                start = f"{last}|"
        return [*rows, *page], more


def _kind(row: AgendaRow) -> str:
    return row.key.partition("|")[0]
