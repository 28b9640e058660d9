"""The state store on Azure Table Storage, or on Cosmos DB for Table."""

from collections.abc import Sequence
from contextlib import suppress

from adapters import operations, tables, writes
from adapters.operations import Operation
from adapters.rows import agenda_row_of, entity_of, record_of
from adapters.tables import TableTransactions
from adapters.writes import Create, Delete, Put, Replace, Write
from core.agenda import AgendaRow, Kind, all_of
from core.changes import Change, Event, HistoryEntry, Note, OutboxEntry
from core.errors import ConflictError
from core.keys import bucket_of, history_key, history_range, order_range
from core.orders import Snapshot


class TableStateStore:
    """`StateStore` on table `orders`: every change is one entity group transaction on one partition."""

    def __init__(self, table: TableTransactions) -> None:
        self._table = table

    async def load(self, order_id: str) -> Snapshot | None:
        """See `StateStore.load`."""
        stored = await self._table.rows(bucket_of(order_id), *order_range(order_id))
        return writes.snapshot_of((row["RowKey"], record_of(row), row.etag) for row in stored)

    async def commit(self, change: Change) -> Snapshot:
        """See `StateStore.commit`."""
        bucket = bucket_of(change.after.order_id)
        wanted = writes.of_change(change)
        etags = await self._table.submit(bucket, [_operation(bucket, write) for write in wanted])
        return writes.committed(change, {write.key: etag for write, etag in zip(wanted, etags, strict=True) if etag})

    async def committed(self, change: Change) -> bool:
        """See `StateStore.committed`."""
        order_id = change.after.order_id
        row = await self._table.get(bucket_of(order_id), history_key(order_id, change.after.state.version))
        return row is not None and row.get("ChangeId") == change.entry.change_id

    async def note(self, note: Note) -> None:
        """See `StateStore.note`."""
        bucket = bucket_of(note.order_id)
        try:
            await self._table.submit(bucket, [_operation(bucket, write) for write in writes.of_note(note)])
        except ConflictError:
            return  # noted already

    async def history(self, order_id: str) -> list[HistoryEntry]:
        """See `StateStore.history`."""
        stored = await self._table.rows(bucket_of(order_id), *history_range(order_id))
        return [record for row in stored if isinstance(record := record_of(row), HistoryEntry)]

    async def agenda(self, bucket: str, start: str, end: str, limit: int) -> list[AgendaRow]:
        """See `StateStore.agenda`."""
        stored = await self._table.rows(bucket, start, end, limit)
        return [agenda_row_of(row) for row in stored if row["RowKey"].startswith("!")]

    async def outbox(self, bucket: str, limit: int, start: str = "") -> list[OutboxEntry]:
        """See `StateStore.outbox`."""
        first, end = all_of(Kind.OUTBOX)
        return [writes.entry_of(row) for row in await self.agenda(bucket, max(first, start), end, limit)]

    async def postpone(self, bucket: str, key: str, row: AgendaRow) -> None:
        """See `StateStore.postpone`."""
        wanted = (Delete(key), Create(row.key, row))
        with suppress(ConflictError):
            await self._table.submit(bucket, [_operation(bucket, write) for write in wanted])

    async def announce(self, bucket: str, event: Event) -> None:
        """See `StateStore.announce`."""
        await tables.submit_each(self._table, bucket, [_operation(bucket, writes.of_announcement(event))])

    async def confirm(self, bucket: str, keys: Sequence[str]) -> None:
        """See `StateStore.confirm`."""
        await tables.submit_each(self._table, bucket, [operations.Delete(bucket, key) for key in dict.fromkeys(keys)])


def _operation(bucket: str, write: Write) -> Operation:
    match write:
        case Create(key, record):
            return operations.Insert(entity_of(bucket, key, record))
        case Replace(key, record, etag):
            return operations.Replace(entity_of(bucket, key, record), etag)
        case Put(key, record):
            return operations.Put(entity_of(bucket, key, record))
        case Delete(key):
            return operations.Delete(bucket, key)
