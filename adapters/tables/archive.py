"""All orders by their age, and how they are removed: on table `orders`, and how far that has come in table `agents`.

An order id holds the time at which it was made, so the rows of a bucket are sorted by age. What is too old stands at
the beginning of the bucket: it is read page by page up to that age, and nothing that is younger is ever looked at.
"""

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import Generic

from adapters.clock import oldest_order_id
from adapters.tables.orders import Codec
from adapters.tables.records import StateRecord
from adapters.tables.transactions import MAX_OPERATIONS
from core.errors import ConflictError, UnreadableRowError
from core.keys import bucket_of, order_key, state_key
from core.orders import Order
from stores.archive import ArchivedOrder, ArchivePage
from stores.tables import Columns, Delete, Put, Row, Stored, Table, columns_of

PAGE = 1000

PLACES = "retention"
"""Partition of the places where the removal of old orders goes on, one row for each bucket."""


def order_id_of(key: str) -> str:
    """Return the order that a row belongs to."""
    return key.partition("|")[0]


class TableArchive(Generic[Row]):
    """`Archive` on a table, with its places in another."""

    def __init__(self, table: Table[Row], codec: Codec[Row], buckets: Sequence[str], places: Table[Columns]) -> None:
        self._table = table
        self._codec = codec
        self.buckets = buckets
        self._places = places

    async def oldest(self, bucket: str, before: datetime | None, start: str) -> ArchivePage:
        """See `Archive.oldest`."""
        end = oldest_order_id(bucket, before)
        first = start or f"{bucket}-"
        rows = await self._table.rows(bucket, first, end, PAGE) if first < end else []
        groups = {order_id: list(group) for order_id, group in groupby(rows, lambda row: order_id_of(row.key))}
        if len(rows) < PAGE:
            return ArchivePage(orders=[self._archived(*each) for each in groups.items()])
        last, cut = groups.popitem()
        if groups:  # the last one may go on after this page: it is the first one of the next
            return ArchivePage(orders=[self._archived(*each) for each in groups.items()], continuation=last)
        return await self._alone(bucket, last, cut, end)

    async def _alone(self, bucket: str, order_id: str, rows: list[Stored[Row]], end: str) -> ArchivePage:
        """Return an order that is larger than a page."""
        rows += await self._table.rows(bucket, f"{rows[-1].key} ", min(end, f"{order_id}|~"))
        return ArchivePage(orders=[self._archived(order_id, rows)], continuation=f"{order_id}~")

    async def remove(self, order: ArchivedOrder) -> None:
        """See `Archive.remove`."""
        bucket = bucket_of(order.order_id)
        history = [key for key in order.keys if "|history|" in key]
        others = [key for key in order.keys if "|history|" not in key]
        if state_key(order.order_id) in others:
            try:
                await self._table.submit(bucket, [Delete(key) for key in others])
            except ConflictError:
                return  # somebody else removes it
        for place in range(0, len(history), MAX_OPERATIONS):
            part = history[place : place + MAX_OPERATIONS]
            await self._table.submit_each(bucket, [Delete(key) for key in part])

    async def place(self, bucket: str) -> str:
        """See `Archive.place`."""
        stored = await self._places.get(PLACES, bucket)
        return columns_of(stored)["Next"] if stored else ""

    async def go_on_from(self, bucket: str, place: str) -> None:
        """See `Archive.go_on_from`."""
        await self._places.submit(PLACES, [Put(bucket, {"Next": place})])

    def _archived(self, order_id: str, rows: list[Stored[Row]]) -> ArchivedOrder:
        keys, wanted = tuple(row.key for row in rows), (order_key(order_id), state_key(order_id))
        try:
            records = [self._codec.record_of(row) for row in rows if row.key in wanted]
            fault = "of its two rows one is missing" if len(records) == 1 else None
        except UnreadableRowError as error:
            fault = str(error)
        if fault:
            return ArchivedOrder(order_id=order_id, order=None, state=None, keys=keys, fault=fault)
        return ArchivedOrder(
            order_id=order_id,
            order=next((record for record in records if isinstance(record, Order)), None),
            state=next((record.state for record in records if isinstance(record, StateRecord)), None),
            keys=keys,
        )
