"""The state store: the durable records of all orders, as rows of table `orders`."""

# The pattern in an hour, 9 of 23: one transaction in the store

import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import Any, TypeVar

from pydantic import AwareDatetime

from engine.concurrency import reached, run_all, settle_all
from engine.decisions.transitions import (
    HistoryEntry,
    Note,
    OperatorEvent,
    Transition,
    acted_on_all,
    acted_row,
)
from engine.domain.causes import Cause, Code
from engine.domain.errors import ConflictError, UnreadableRowError
from engine.domain.history import read_events, to_data
from engine.domain.keys import (
    ABOUT_ORDER,
    bucket_of,
    history_key,
    history_range,
    key_part,
    order_in,
    order_key,
    order_range,
    state_key,
)
from engine.domain.orders import OrderAggregate, WorkItem
from engine.domain.submitted_order import Order
from engine.domain.work_index import ACTED_PREFIX, ENDED_PREFIX, IndexRow
from engine.storage import outbox
from engine.storage.order_rows import (
    StateRecord,
    columns_of_state,
    order_of,
    state_in,
    state_record,
)
from engine.storage.tables import (
    Columns,
    Delete,
    ETags,
    Insert,
    Operation,
    Put,
    Replace,
    RowMapper,
    Stored,
    Table,
    columns_of,
)

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Keyed:
    """A business key of an order. All of its data is in its row key."""

    order_id: str


LISTED = ("!", ENDED_PREFIX, ACTED_PREFIX)
"""The prefixes of rows of the work index, and of rows that list ended orders and operators'
actions."""

Record = Order | StateRecord | HistoryEntry | IndexRow | Keyed

ORDER = RowMapper(Order, texts=("payload", "key_rows"), order_id="OrderID")


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryRow:
    """A stored entry of the history: its events as data, and as one line for readers."""

    at: AwareDatetime
    """The time of the transition."""
    actor: str
    """The role, operator or customer that made the transition."""
    event: str
    """The name of the transition's most important event."""
    detail: str = ""
    """All events of the transition as one line for people."""
    data: Any = None
    """All events of the transition with their values, as JSON."""
    change_id: str = ""
    """The id by which a writer recognises its transition if the answer to the write was lost."""


HISTORY = RowMapper(HistoryRow, texts=("data",))


def columns_of_record(record: Record) -> Columns:
    match record:
        case Order():
            return ORDER.columns(record)
        case StateRecord():
            return columns_of_state(record)
        case HistoryEntry():
            return _history_columns(record)
        case IndexRow():
            return {"OrderID": record.order_id, **record.data}
        case Keyed():
            return {"OrderID": record.order_id}


def record_of(stored: Stored) -> Record:
    """Read the record in a row, whose kind follows from its key. Raises `UnreadableRowError`.

    An unreadable row of the work index is returned with its fault, so that it does not hide other
    rows.
    """
    if stored.key.startswith(LISTED):
        return _index_row(stored)
    try:
        return _record_of(stored.key, columns_of(stored))
    except (LookupError, ValueError, TypeError) as fault:
        facts = {"row": stored.key, "error": f"{type(fault).__name__} {fault}"}
        raise UnreadableRowError(Cause(Code.ROW_UNREADABLE, facts)) from fault


def _index_row(stored: Stored) -> IndexRow:
    try:
        columns = columns_of(stored)
        own = columns.pop("OrderID", "")
        order_id = order_in(stored.key) or order_in(str(own))
        return IndexRow(key=stored.key, order_id=order_id, data=columns)
    except (UnreadableRowError, TypeError) as fault:
        return IndexRow(key=stored.key, order_id=order_in(stored.key), fault=str(fault))


def _record_of(key: str, columns: Columns) -> Record:
    match key.split("|")[1]:
        case "state":
            return state_in(columns)
        case "history":
            return _history_entry(HISTORY.record(columns))
        case _:
            return ORDER.record(columns)


def _history_columns(entry: HistoryEntry) -> Columns:
    row = HistoryRow(
        at=entry.at,
        actor=entry.actor,
        event=entry.event,
        detail=entry.detail,
        data=to_data(entry.events) or None,
        change_id=entry.change_id,
    )
    return HISTORY.columns(row)


def _history_entry(row: HistoryRow) -> HistoryEntry:
    events = read_events(row.event, row.detail, row.data)
    return HistoryEntry(at=row.at, actor=row.actor, events=events, change_id=row.change_id)


def of_transition(
    transition: Transition, address: str | None = None
) -> tuple[OrderAggregate, list[Operation]]:
    """Return the order as it is written, and all operations of its transaction.

    The written order holds the row keys of its work items. `address` is the public address of the
    app, for links in notifications.
    """
    met, pending = transition.work_items()
    written = replace(
        transition.after.derived, work_items=tuple(WorkItem(key=key) for key in pending)
    )
    order = replace(transition.after, derived=written)
    return order, [
        *_of_order(transition.before, order),
        Insert(history_key(order.order_id, order.version), transition.entry),
        *(Delete(key) for key in met),
        *(Put(row.key, row) for row in pending.values()),
        *(Insert(row.key, row) for row in outbox.rows_of(transition, address)),
        *_acted(order.order_id, order.version, transition.entry),
    ]


def _acted(order_id: str, version: int, entry: HistoryEntry) -> Iterator[Operation]:
    if row := acted_row(order_id, version, entry):
        yield Put(row.key, row)


def _of_order(before: OrderAggregate | None, after: OrderAggregate) -> Iterator[Operation]:
    """Yield the operations on the order's own rows, under the ETag of its state."""
    submitted, record = after.submitted, state_record(after)
    if before is None or before.etag is None:
        yield Insert(order_key(after.order_id), submitted)
        yield Insert(state_key(after.order_id), record)
        # Nothing else ever writes the rows of its business keys.
        yield from (Put(key, Keyed(after.order_id)) for key in submitted.key_rows)
        return
    if before.submitted != submitted:
        yield Put(order_key(after.order_id), submitted)
        kept = submitted.key_rows
        yield from (Delete(key) for key in before.submitted.key_rows if key not in kept)
    yield Replace(state_key(after.order_id), record, before.etag)


def of_note(note: Note) -> list[Operation]:
    history = Insert(history_key(note.order_id, note.version, key_part(note.note_id)), note.entry)
    events = (outbox.of_event(note.order_id, event) for event in note.events)
    acted = _acted(note.order_id, note.version, note.entry)
    return [history, *(Insert(row.key, row) for row in events), *acted]


def loaded(rows: Iterable[tuple[Record, str]]) -> OrderAggregate | None:
    """Make the order from its rows, each with its ETag. None if there are no rows.

    Raises `UnreadableRowError` if one of the two rows or all steps are missing, or if the rows name
    different orders. Such an order would otherwise look completed.
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
        raise UnreadableRowError(Cause(Code.ROW_MISSING))
    record, etag = found
    if record.state.order_id != order.order_id:
        raise UnreadableRowError(Cause(Code.ROWS_DIFFER, {"order": order.order_id}))
    if not record.steps:
        raise UnreadableRowError(Cause(Code.NO_STEPS, {"order": order.order_id}))
    return order_of(order, record, etag)


class OrderStore:
    """Loads and changes orders. Each change is one entity group transaction on one partition.

    Every method raises `UnavailableError` if the store cannot be reached.
    """

    columns_of = staticmethod(columns_of_record)
    record_of = staticmethod(record_of)

    def __init__(self, table: Table, buckets: Sequence[str], address: str | None = None) -> None:
        self.table = table
        self.buckets = buckets
        """The partitions over which orders are spread."""
        self._address = address
        """The public address of the app, for links. None if it is not configured."""

    def over(self, table: Table) -> "OrderStore":
        """Return the same store on another connection to its table."""
        return self if table is self.table else OrderStore(table, self.buckets, self._address)

    async def load(self, order_id: str) -> OrderAggregate | None:
        """Load an order with its state and steps, but without its history.

        None if it does not exist. Raises `UnreadableRowError` if one of its rows is missing or
        cannot be read.
        """
        stored = await self.table.rows(bucket_of(order_id), *order_range(order_id))
        return loaded((self.record_of(row), row.etag) for row in stored)

    async def commit(self, transition: Transition) -> OrderAggregate:
        """Write all rows of the transition, or none. Return the order with its new ETag.

        Raises `ConflictError` if another writer was first, or if this transition was written and
        the answer was lost. `committed` tells the two apart. After an `UnavailableError` it is
        unknown whether the transition was written.
        """
        order_id = transition.after.order_id
        after, operations = of_transition(transition, self._address)
        etags = await self._submit(bucket_of(order_id), operations)
        keys = [operation.key for operation in operations]
        return replace(after, etag=etags[keys.index(state_key(order_id))])

    async def committed(self, transition: Transition) -> bool:
        """Whether the history shows that exactly this transition made its version."""
        order_id = transition.after.order_id
        key = history_key(order_id, transition.after.version)
        row = await self.table.get(bucket_of(order_id), key)
        entry = self.record_of(row) if row else None
        return isinstance(entry, HistoryEntry) and entry.change_id == transition.entry.change_id

    async def note(self, note: Note) -> None:
        """Append a note to the history and the outbox without a transition.

        A repeat has no effect.
        """
        with suppress(ConflictError):  # noted already
            await self._submit(bucket_of(note.order_id), of_note(note))

    async def note_act_on_all(self, since: datetime, entry: HistoryEntry) -> None:
        """List an operator's action on all orders, unless it has been listed since this time."""
        row = acted_on_all(since, entry)
        with suppress(ConflictError):
            await self._submit(self.buckets[0], [Insert(row.key, row)])

    async def history(self, order_id: str, version: int | None = None) -> list[HistoryEntry]:
        """Return the history, oldest first.

        With `version`, only up to that version of the order.
        """
        stored = await self.table.rows(bucket_of(order_id), *history_range(order_id, version))
        records = (self.record_of(row) for row in stored)
        return [record for record in records if isinstance(record, HistoryEntry)]

    async def work_items(self, bucket: str, start: str, end: str, limit: int) -> list[IndexRow]:
        """Return up to `limit` work items of the bucket with start <= key < end, in key order.

        An unreadable row is returned with its `fault`, because it affects only its own order.
        """
        stored = await self.table.rows(bucket, start, end, limit)
        rows = (self.record_of(row) for row in stored if row.key.startswith(LISTED))
        return [row for row in rows if isinstance(row, IndexRow)]

    async def work_items_by_bucket(self, start: str, end: str, limit: int) -> list[list[IndexRow]]:
        """Return the work items of each bucket.

        Raises `ExceptionGroup` if a bucket cannot be read.
        """
        return await run_all(self.work_items(bucket, start, end, limit) for bucket in self.buckets)

    async def read_buckets(self, read: Callable[[str], Coroutine[Any, Any, T]]) -> dict[str, T]:
        """Call `read` for each bucket, and return the results of the buckets that can be reached.

        Raises `ExceptionGroup` if no bucket can be reached.
        """
        outcomes = await settle_all(map(read, self.buckets))
        found, failures = reached(dict(zip(self.buckets, outcomes, strict=True)))
        for bucket, why in failures.items():
            log.warning("orders.bucket_passed_over", extra={"bucket": bucket, "why": repr(why)})
        return found

    async def key_rows(self, start: str, end: str, limit: int) -> list[str]:
        """Return the row keys of business keys with start <= key < end, sorted.

        Reads up to `limit` keys of each bucket. Raises `ExceptionGroup` if a bucket cannot be read.
        """
        found = await run_all(self.table.rows(bucket, start, end, limit) for bucket in self.buckets)
        return sorted(row.key for row in chain.from_iterable(found))

    async def postpone(self, bucket: str, key: str, row: IndexRow) -> bool:
        """Replace a work item by `row` in one transaction.

        Return whether the old one still existed. If `row` already exists, it is overwritten.
        """
        try:
            await self._submit(bucket, [Delete(key), Put(row.key, row)])
        except ConflictError:
            return False
        return True

    async def announce(self, bucket: str, event: OperatorEvent) -> None:
        """Put an event that belongs to no recorded order into the outbox.

        A repeat has no effect.
        """
        row = outbox.of_event(event.subject.removeprefix(ABOUT_ORDER), event)
        await self.table.submit_separately(bucket, [self._stored(Insert(row.key, row))])

    async def confirm(self, bucket: str, keys: Sequence[str]) -> None:
        """Remove outbox rows whose content was sent. Missing rows are ignored."""
        await self.table.submit_separately(bucket, [Delete(key) for key in dict.fromkeys(keys)])

    async def _submit(self, bucket: str, operations: Sequence[Operation]) -> ETags:
        return await self.table.submit(
            bucket, [self._stored(operation) for operation in operations]
        )

    def _stored(self, operation: Operation) -> Operation:
        if isinstance(operation, Delete):
            return operation
        return replace(operation, row=self.columns_of(operation.row))
