"""The state store on Azure Table Storage, or on Cosmos DB for Table."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Generic

from adapters.tables import writes
from adapters.tables.operations import Delete, ETags, Insert, Operation, Put, Replace, Row, Stored, Table
from adapters.tables.records import Record, columns_of_record, record_of
from adapters.tables.rows import Columns
from core import outbox
from core.agenda import AgendaRow
from core.changes import Change, Event, HistoryEntry, Note
from core.errors import ConflictError
from core.keys import bucket_of, history_key, history_range, order_range, state_key
from core.orders import Snapshot


@dataclass(frozen=True, slots=True)
class Codec(Generic[Row]):
    """How records become rows, and come back."""

    row_of: Callable[[Record], Row]
    record_of: Callable[[Stored[Row]], Record]


AS_COLUMNS: Codec[Columns] = Codec(columns_of_record, record_of)


class TableStateStore(Generic[Row]):
    """`StateStore` on table `orders`: every change is one entity group transaction on one partition."""

    def __init__(self, table: Table[Row], codec: Codec[Row]) -> None:
        self._table = table
        self._codec = codec

    async def load(self, order_id: str) -> Snapshot | None:
        """See `StateStore.load`."""
        stored = await self._table.rows(bucket_of(order_id), *order_range(order_id))
        return writes.snapshot_of((self._codec.record_of(row), row.etag) for row in stored)

    async def commit(self, change: Change) -> Snapshot:
        """See `StateStore.commit`."""
        order_id, operations = change.after.order_id, writes.of_change(change)
        etags = await self._submit(bucket_of(order_id), operations)
        (etag,) = (etag for each, etag in zip(operations, etags, strict=True) if each.key == state_key(order_id))
        return replace(change.recorded(), etag=etag)

    async def committed(self, change: Change) -> bool:
        """See `StateStore.committed`."""
        order_id = change.after.order_id
        row = await self._table.get(bucket_of(order_id), history_key(order_id, change.after.state.version))
        entry = self._codec.record_of(row) if row else None
        return isinstance(entry, HistoryEntry) and entry.change_id == change.entry.change_id

    async def note(self, note: Note) -> None:
        """See `StateStore.note`."""
        with suppress(ConflictError):  # noted already
            await self._submit(bucket_of(note.order_id), writes.of_note(note))

    async def history(self, order_id: str) -> list[HistoryEntry]:
        """See `StateStore.history`."""
        stored = await self._table.rows(bucket_of(order_id), *history_range(order_id))
        return [record for row in stored if isinstance(record := self._codec.record_of(row), HistoryEntry)]

    async def agenda(self, bucket: str, start: str, end: str, limit: int) -> list[AgendaRow]:
        """See `StateStore.agenda`."""
        stored = await self._table.rows(bucket, start, end, limit)
        rows = (self._codec.record_of(row) for row in stored if row.key.startswith("!"))
        return [row for row in rows if isinstance(row, AgendaRow)]

    async def postpone(self, bucket: str, key: str, row: AgendaRow) -> None:
        """See `StateStore.postpone`."""
        with suppress(ConflictError):
            await self._submit(bucket, [Delete(key), Put(row.key, row)])

    async def announce(self, bucket: str, event: Event) -> None:
        """See `StateStore.announce`."""
        row = outbox.of_event(event.subject.removeprefix("orders/"), event)
        await self._table.submit_each(bucket, [self._stored(Insert(row.key, row))])

    async def confirm(self, bucket: str, keys: Sequence[str]) -> None:
        """See `StateStore.confirm`."""
        await self._table.submit_each(bucket, [Delete(key) for key in dict.fromkeys(keys)])

    async def _submit(self, bucket: str, operations: Sequence[Operation[Record]]) -> ETags:
        return await self._table.submit(bucket, [self._stored(operation) for operation in operations])

    def _stored(self, operation: Operation[Record]) -> Operation[Row]:
        match operation:
            case Insert(key, record):
                return Insert(key, self._codec.row_of(record))
            case Replace(key, record, etag):
                return Replace(key, self._codec.row_of(record), etag)
            case Put(key, record):
                return Put(key, self._codec.row_of(record))
            case Delete():
                return operation
