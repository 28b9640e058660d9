"""Reads all orders by age and removes old ones, on table `orders`.

Its progress is in table `agents`. An order id contains the time when the order was made, so the
rows of a bucket are sorted by age. The oldest orders come first and are read page by page up to an
age. Younger orders are never read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ulid import ULID

from engine.domain.errors import ConflictError, UnreadableRowError
from engine.domain.keys import LAST, bucket_of, newest_first, order_key, state_key
from engine.domain.orders import OrderAggregate
from engine.domain.work_index import ACTED_PREFIX
from engine.storage.orders import OrderStore, loaded
from engine.storage.tables import Delete, Put, Stored, Table, columns_of

PAGE = 1000

PLACES = "retention"
"""The partition with the places at which removals continue: one row for each bucket."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchivedOrder:
    """An order with the keys of all its rows."""

    order_id: str
    record: OrderAggregate | None = None
    """None if the order cannot be read, or if a crash has left only its history."""
    keys: Sequence[str]
    fault: str = ""
    """Why the order cannot be read. Empty if it can."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchivePage:
    """A page of orders, oldest first."""

    orders: Sequence[ArchivedOrder]
    continuation: str = ""
    """Where the next page starts. Empty on the last page."""


class Archive:
    """Reads all orders by age, and removes them. Every method raises `UnavailableError`."""

    def __init__(self, orders: OrderStore, places: Table) -> None:
        self._orders = orders
        self._table = orders.table
        self._places = places
        self.buckets = orders.buckets

    async def oldest(self, bucket: str, before: datetime | None, start: str) -> ArchivePage:
        """Return the oldest orders of the bucket. Start at `start` unless it is empty.

        With `before`, only orders that were made before that time are read.
        """
        end = oldest_order_id(bucket, before)
        first = start or f"{bucket}-"
        rows = await self._table.rows(bucket, first, end, PAGE) if first < end else []
        by_order: dict[str, list[Stored]] = {}
        for row in rows:
            by_order.setdefault(row.key.partition("|")[0], []).append(row)
        continuation = ""
        if len(rows) == PAGE:
            # The last order may have rows behind this page, so it begins the next page.
            continuation, cut = by_order.popitem()
            if not by_order:  # one order is larger than a page
                rest = min(end, f"{continuation}|~")
                cut += await self._table.rows(bucket, f"{cut[-1].key} ", rest)
                by_order, continuation = {continuation: cut}, f"{continuation}~"
        orders = [self._archived(order_id, found) for order_id, found in by_order.items()]
        return ArchivePage(orders=orders, continuation=continuation)

    async def remove(self, order: ArchivedOrder) -> None:
        """Remove all rows of an order: its business keys, its own rows, and its history.

        Business keys go first, because only the order knows them. The row that lists the order goes
        together with its own rows, so no reader sees part of an order. A history that a crash has
        left is removed by a later call.
        """
        bucket = bucket_of(order.order_id)
        named = order.record.submitted.key_rows if order.record else ()
        items = order.record.derived.work_items if order.record else ()
        listed = [item.key for item in items]
        await self._table.submit_separately(bucket, [Delete(key) for key in named])
        history = [key for key in order.keys if "|history|" in key]
        others = [key for key in order.keys if "|history|" not in key]
        if state_key(order.order_id) in others:
            try:
                await self._table.submit(bucket, [Delete(key) for key in (*others, *listed)])
            except ConflictError:
                return  # another process removes it
        await self._table.submit_separately(bucket, [Delete(key) for key in history])

    async def remove_acted(self, time: datetime) -> int:
        """Remove up to `PAGE` rows in each bucket that list operators' actions before this time.

        Returns the number of removed rows.
        """
        start, count = f"{ACTED_PREFIX}{newest_first(time)}~", 0
        for bucket in self.buckets:
            old = await self._table.rows(bucket, start, f"{ACTED_PREFIX}{LAST}", PAGE)
            await self._table.submit_separately(bucket, [Delete(row.key) for row in old])
            count += len(old)
        return count

    async def place(self, bucket: str) -> str:
        """Return the place at which removals in the bucket continue. Empty for the beginning."""
        stored = await self._places.get(PLACES, bucket)
        return columns_of(stored)["Next"] if stored else ""

    async def go_on_from(self, bucket: str, place: str) -> None:
        """Store the place at which the next removals continue, on any instance."""
        await self._places.submit(PLACES, [Put(bucket, {"Next": place})])

    def _archived(self, order_id: str, rows: list[Stored]) -> ArchivedOrder:
        keys = tuple(row.key for row in rows)
        own = [row for row in rows if row.key in (order_key(order_id), state_key(order_id))]
        try:
            record = loaded((self._orders.record_of(row), row.etag) for row in own)
        except UnreadableRowError as error:
            return ArchivedOrder(order_id=order_id, keys=keys, fault=str(error))
        return ArchivedOrder(order_id=order_id, keys=keys, record=record)


def oldest_order_id(bucket: str, time: datetime | None) -> str:
    """Return a lower bound for the ids of orders made at this time or later.

    With None, return an upper bound of all ids.
    """
    return f"{bucket}-{str(ULID.from_datetime(time))[:10] if time else LAST}"
