"""All orders by their age, and how they are removed: on table `orders`, and how far that has come in table `agents`.

An order id holds the time at which it was made, so the rows of a bucket are sorted by age. What is too old stands at
the beginning of the bucket: it is read page by page up to that age, and nothing that is younger is ever looked at.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from ulid import ULID

from core.errors import ConflictError, UnreadableRowError
from core.keys import LAST, bucket_of, order_key, state_key
from core.orders import Snapshot
from stores.orders import OrderStore, snapshot_of
from stores.tables import Delete, Put, Stored, Table, columns_of

PAGE = 1000

PLACES = "retention"
"""Partition of the places where the removal of old orders goes on, one row for each bucket."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchivedOrder:
    """One order with the keys of all its rows."""

    order_id: str
    snapshot: Snapshot | None = None
    """None if the order was removed, and its history is left over from a crash; or if it cannot be read."""
    keys: Sequence[str]
    fault: str = ""
    """Why the order cannot be read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchivePage:
    """Some orders, the oldest first."""

    orders: Sequence[ArchivedOrder]
    continuation: str = ""
    """Where the next page begins; empty on the last one."""


class Archive:
    """All orders by their age, and how they are removed. Every method raises `UnavailableError`."""

    def __init__(self, orders: OrderStore, places: Table) -> None:
        self._orders = orders
        self._table = orders.table
        self._places = places
        self.buckets = orders.buckets

    async def oldest(self, bucket: str, before: datetime | None, start: str) -> ArchivePage:
        """Return the oldest orders of the bucket, from `start` on if that is not empty.

        With `before`, only those that were made before that time: nothing that is younger is looked at.
        """
        end = oldest_order_id(bucket, before)
        first = start or f"{bucket}-"
        rows = await self._table.rows(bucket, first, end, PAGE) if first < end else []
        groups = {
            order_id: list(group)
            for order_id, group in groupby(rows, lambda row: row.key.partition("|")[0])
        }
        continuation = ""
        if len(rows) == PAGE:
            continuation, cut = (
                groups.popitem()
            )  # it may go on after this page: it is the first one of the next
            if not groups:  # an order that is larger than a page
                cut += await self._table.rows(
                    bucket, f"{cut[-1].key} ", min(end, f"{continuation}|~")
                )
                groups, continuation = {continuation: cut}, f"{continuation}~"
        return ArchivePage(
            orders=[self._archived(*each) for each in groups.items()], continuation=continuation
        )

    async def remove(self, order: ArchivedOrder) -> None:
        """Remove all rows of an order: those that make it one in one transaction, and then its history.

        Nothing but whole orders is ever seen; a history that a crash leaves over is removed when it is met again.
        """
        bucket = bucket_of(order.order_id)
        history = [key for key in order.keys if "|history|" in key]
        others = [key for key in order.keys if "|history|" not in key]
        if state_key(order.order_id) in others:
            try:
                await self._table.submit(bucket, [Delete(key) for key in others])
            except ConflictError:
                return  # somebody else removes it
        await self._table.submit_each(bucket, [Delete(key) for key in history])

    async def place(self, bucket: str) -> str:
        """Return from where on whoever removes old orders goes on in the bucket; empty for its beginning."""
        stored = await self._places.get(PLACES, bucket)
        return columns_of(stored)["Next"] if stored else ""

    async def go_on_from(self, bucket: str, place: str) -> None:
        """Remember that place, for any instance."""
        await self._places.submit(PLACES, [Put(bucket, {"Next": place})])

    def _archived(self, order_id: str, rows: list[Stored]) -> ArchivedOrder:
        keys, wanted = tuple(row.key for row in rows), (order_key(order_id), state_key(order_id))
        try:
            snapshot = snapshot_of(
                (self._orders.record_of(row), row.etag) for row in rows if row.key in wanted
            )
        except UnreadableRowError as error:
            return ArchivedOrder(order_id=order_id, keys=keys, fault=str(error))
        return ArchivedOrder(order_id=order_id, keys=keys, snapshot=snapshot)


def oldest_order_id(bucket: str, time: datetime | None) -> str:
    """Return what sorts before the id of every order of the bucket that was made at this time or later; None: after."""
    return f"{bucket}-{str(ULID.from_datetime(time))[:10] if time else LAST}"
