"""Which rows a change writes: the one place that says so, for the tables and for the store in memory alike."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from adapters.tables.operations import Delete, Insert, Operation, Put, Replace
from adapters.tables.records import Record, StateRecord
from core import outbox
from core.agenda import AgendaRow
from core.changes import Change, Note
from core.errors import UnreadableRowError
from core.keys import history_key, key_part, order_key, state_key
from core.notices import notices_of
from core.orders import Order, Snapshot


def of_change(change: Change) -> list[Operation[Record]]:
    """Return all operations of a change; together they are one transaction."""
    before, after = change.before, change.recorded()
    met, new = change.agenda_difference()
    events = (outbox.of_event(after.order_id, event) for event in change.events)
    notices = (outbox.of_notice(notice, change.entry.at) for notice in notices_of(before, after, change.entry.at))
    return [
        *_of_order(before, after),
        Insert(history_key(after.order_id, after.state.version), change.entry),
        *(Delete(key) for key in met),
        *(Put(row.key, _without_nulls(row)) for row in new),
        *(Insert(row.key, row) for row in (*events, *notices)),
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
