"""To which orders something is owed, in all buckets: read once for all who ask at about the same time."""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from core import agenda
from core.agenda import Kind
from core.keys import bucket_of
from core.ports import Clock
from stores.orders import OrderStore

MAX_COUNTED = 1000
"""In each bucket: more are not counted, only said to be there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Orders:
    """The orders to which something of one kind is owed."""

    at: datetime
    """When they began to be read."""
    ids: frozenset[str]
    more: bool
    """Whether there are more, which were not read."""
    buckets: Collection[str]
    """In which it was read."""

    def are_without(self, order_id: str) -> bool:
        """Whether it is certain that this order is none of them."""
        return not self.more and bucket_of(order_id) in self.buckets and order_id not in self.ids


@dataclass(frozen=True, kw_only=True)
class Owed:
    """Reads the agenda, and remembers of each kind what was read last."""

    store: OrderStore
    clock: Clock
    _last: dict[Kind, Orders] = field(default_factory=dict)

    async def orders(self, kind: Kind, after: datetime) -> Orders:
        """Return to whom this is owed, as it is read after that time; raises `UnavailableError`."""
        last = self._last.get(kind)
        if last is None or last.at <= after:
            last = self._last[kind] = await self._read(kind)
        return last

    async def _read(self, kind: Kind) -> Orders:
        at = self.clock()
        pages = await self.store.agendas(*agenda.all_of(kind), MAX_COUNTED)
        return Orders(
            at=at,
            ids=frozenset(row.order_id for page in pages for row in page),
            more=any(len(page) == MAX_COUNTED for page in pages),
            buckets=self.store.buckets,
        )
