"""The state store on Azure Table Storage, or on Cosmos DB for Table."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Generic

from adapters.tables.records import Record, StateRecord, columns_of_record, record_of
from core import outbox
from core.agenda import AgendaRow
from core.changes import Change, Event, HistoryEntry, Note
from core.errors import ConflictError, UnreadableRowError
from core.gathering import run_all
from core.keys import bucket_of, history_key, history_range, key_part, order_key, order_range, state_key
from core.orders import Order, Snapshot
from stores.tables import Columns, Delete, ETags, Insert, Operation, Put, Replace, Row, Stored, Table


def of_change(change: Change) -> list[Operation[Record]]:
    """Return all operations of a change; together they are one transaction."""
    before, after = change.before, change.recorded()
    met, new = change.agenda_difference()
    return [
        *_of_order(before, after),
        Insert(history_key(after.order_id, after.state.version), change.entry),
        *(Delete(key) for key in met),
        *(Put(row.key, _without_nulls(row)) for row in new),
        *(Insert(row.key, row) for row in outbox.owed(before, after, change)),
    ]


def _of_order(before: Snapshot | None, after: Snapshot) -> Iterator[Operation[Record]]:
    """Yield the operations on the order's own rows, over which the ETag of its state decides."""
    record = StateRecord(state=after.state, steps=after.steps)
    if before is None or before.etag is None:
        yield Insert(order_key(after.order_id), after.order)
        yield Insert(state_key(after.order_id), record)
        return
    if before.order != after.order:
        yield Put(order_key(after.order_id), after.order)
    yield Replace(state_key(after.order_id), record, before.etag)


def of_note(note: Note) -> list[Operation[Record]]:
    """Return the operations of a note."""
    history: Operation[Record] = Insert(history_key(note.order_id, note.version, key_part(note.note_id)), note.entry)
    events = (outbox.of_event(note.order_id, event) for event in note.events)
    return [history, *(Insert(row.key, row) for row in events)]


def _without_nulls(row: AgendaRow) -> AgendaRow:
    """Drop the nulls: a table stores none, an absent property stands for one."""
    return replace(row, data={name: value for name, value in row.data.items() if value is not None})


def snapshot_of(rows: Iterable[tuple[Record, str]]) -> Snapshot | None:
    """Return the order from its rows, each with its ETag; None if there are none.

    Raises `UnreadableRowError` if one of the rows is missing, or the steps: it would pass for one that needs no more.
    """
    order: Order | None = None
    found: tuple[StateRecord, str] | None = None
    for record, etag in rows:
        match record:
            case Order():
                order = record
            case StateRecord():
                found = record, etag
    if order is None and found is None:
        return None
    if order is None or found is None:
        raise UnreadableRowError("the order cannot be read: of its two rows one is missing")
    record, etag = found
    if not record.steps:
        raise UnreadableRowError(f"order {order.order_id} cannot be read: it has no steps")
    return Snapshot(order=order, state=record.state, steps=record.steps, etag=etag)


@dataclass(frozen=True, slots=True)
class Codec(Generic[Row]):
    """How records become rows, and come back."""

    row_of: Callable[[Record], Row]
    record_of: Callable[[Stored[Row]], Record]


AS_COLUMNS: Codec[Columns] = Codec(columns_of_record, record_of)


class TableStateStore(Generic[Row]):
    """`StateStore` on table `orders`: every change is one entity group transaction on one partition."""

    def __init__(self, table: Table[Row], codec: Codec[Row], buckets: Sequence[str]) -> None:
        self._table = table
        self._codec = codec
        self.buckets = buckets

    async def load(self, order_id: str) -> Snapshot | None:
        """See `StateStore.load`."""
        stored = await self._table.rows(bucket_of(order_id), *order_range(order_id))
        return snapshot_of((self._codec.record_of(row), row.etag) for row in stored)

    async def commit(self, change: Change) -> Snapshot:
        """See `StateStore.commit`."""
        order_id, operations = change.after.order_id, of_change(change)
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
            await self._submit(bucket_of(note.order_id), of_note(note))

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

    async def agendas(self, start: str, end: str, limit: int) -> list[list[AgendaRow]]:
        """See `StateStore.agendas`."""
        return await run_all(self.agenda(bucket, start, end, limit) for bucket in self.buckets)

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
