"""What is owed to orders, in all buckets: read once for all who ask at about the same time."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from core import agenda
from core.agenda import AgendaRow, Kind
from core.keys import LAST, bucket_of
from core.ports import Clock
from stores.orders import OrderStore

MAX_COUNTED = 1000
"""Of each kind in each bucket: more are not counted, only said to be there."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """What was owed at a time, as far as it was read."""

    at: datetime
    """When it began to be read."""
    rows: Mapping[Kind, Sequence[AgendaRow]]
    whole: Set[tuple[str, Kind]]
    """Of which buckets all rows of a kind were read."""
    buckets: int
    """How many there are."""

    def more(self, kind: Kind) -> bool:
        """Whether there may be more rows of this kind than were read."""
        return sum(each == kind for _, each in self.whole) < self.buckets

    @cached_property
    def orders(self) -> Mapping[Kind, Mapping[str, AgendaRow]]:
        """The orders to which something of each kind is owed, each with one of its rows."""
        return {kind: {row.order_id: row for row in rows} for kind, rows in self.rows.items()}

    def is_over(self, kind: Kind, order_id: str, since: datetime | None = None) -> bool:
        """Whether it is certain that nothing of this kind is owed to the order, or nothing that is so since then."""
        if (bucket_of(order_id), kind) not in self.whole:
            return False
        row = self.orders[kind].get(order_id)
        return row is None or (since is not None and _since(row) not in (None, since))


@dataclass(frozen=True, kw_only=True)
class Owed:
    """Reads the agenda, and remembers what was read last."""

    store: OrderStore
    clock: Clock
    _last: list[Look] = field(default_factory=list)

    async def recent(self, kept: timedelta) -> Look:
        """Return what is owed, as it was read so long ago at most, by this clock; raises as `look` does."""
        age = self.clock() - self._last[0].at if self._last else kept
        return self._last[0] if timedelta(0) <= age < kept else await self.look()

    async def look(self) -> Look:
        """Read what is owed, but in buckets that cannot be reached; raises `ExceptionGroup` if that is all of them."""
        at, found = self.clock(), await self.store.of_each_bucket(self._owed_in)
        rows = {
            kind: [row for rows, _ in found.values() for row in rows if _kind(row) == kind]
            for kind in Kind
        }
        whole = {
            (bucket, kind)
            for bucket, (_, more) in found.items()
            for kind in Kind
            if kind not in more
        }
        self._last[:] = [Look(at=at, rows=rows, whole=whole, buckets=len(self.store.buckets))]
        return self._last[0]

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


def _since(row: AgendaRow) -> datetime | None:
    try:
        return agenda.since(row)
    except ValueError:
        return None
