"""Which rows a change writes: the one place that says so, for the tables and for the store in memory alike."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from adapters.operations import Delete, Insert, Operation, Put, Replace
from adapters.records import Record, StateRecord
from core.agenda import AgendaRow, notice_key, outbox_key
from core.changes import Change, Event, Note, OutboxEntry
from core.errors import UnreadableRowError
from core.keys import history_key, order_key, state_key
from core.notices import Notice, notices_of
from core.orders import Order, Snapshot
from core.texts import json_text


def of_change(change: Change) -> list[Operation[Record]]:
    """Return all operations of a change; together they are one transaction."""
    before, after = change.before, change.recorded()
    met, new = change.agenda_difference()
    notices = map(notice_row, notices_of(before, after, change.entry.at))
    return [
        *_of_order(before, after),
        Insert(history_key(after.order_id, after.state.version), change.entry),
        *(Delete(key) for key in met),
        *(Put(row.key, _without_nulls(row)) for row in new),
        *(Insert(row.key, row) for row in (outbox_row(after.order_id, event) for event in change.events)),
        *(Insert(row.key, row) for row in notices),
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
    outbox = (outbox_row(note.order_id, event) for event in note.events)
    return [history, *(Insert(row.key, row) for row in outbox)]


def of_announcement(event: Event) -> Insert[Record]:
    """Return the operation that puts an event of no recorded order into the outbox."""
    row = outbox_row(event.subject.removeprefix("orders/"), event)
    return Insert(row.key, row)


def _without_nulls(row: AgendaRow) -> AgendaRow:
    """Drop the nulls: a table stores none, an absent property stands for one."""
    return replace(row, data={name: value for name, value in row.data.items() if value is not None})


def outbox_row(order_id: str, event: Event) -> AgendaRow:
    """Return the obligation to send an event; `event_of` turns it back."""
    key = outbox_key(event.at, key_part(order_id), key_part(event.event_id))
    return AgendaRow(key=key, order_id=order_id, data=event_columns(event))


def notice_row(notice: Notice) -> AgendaRow:
    """Return the obligation to send a notice."""
    columns = {
        "NoticeId": notice.notice_id,
        "Queue": notice.queue,
        "Event": notice.event,
        "At": notice.at,
        "Sequence": notice.sequence,
        "Step": notice.step,
        "Reason": notice.reason,
        "Tries": 0,
    }
    row = AgendaRow(key=notice_key(notice.at, notice.notice_id), order_id=notice.order_id, data=columns)
    return _without_nulls(row)


def event_columns(event: Event) -> dict[str, Any]:
    """Return the columns of an event."""
    return {
        "EventId": event.event_id,
        "Type": event.type,
        "Subject": event.subject,
        "At": event.at,
        "Data": json_text(event.data),
    }


def entry_of(row: AgendaRow) -> OutboxEntry:
    """Return the event that an outbox row holds, or why nobody can read it."""
    try:
        return OutboxEntry(key=row.key, event=event_of(row))
    except (LookupError, ValueError, TypeError) as fault:
        return OutboxEntry(key=row.key, event=None, fault=row.fault or f"{type(fault).__name__} {fault}")


def event_of(row: AgendaRow) -> Event:
    """Return the event that an outbox row holds."""
    return event_from(row.data)


def event_from(columns: Mapping[str, Any]) -> Event:
    """Return the event from its columns."""
    return Event(
        event_id=columns["EventId"],
        type=columns["Type"],
        subject=columns["Subject"],
        at=columns["At"],
        data=json.loads(columns["Data"]),
    )


def key_part(text: str) -> str:
    """Return the text with what a row key cannot hold, or what would upset its order, escaped as `=<hex>=`."""
    return re.sub(r"[^A-Za-z0-9_.:|-]", lambda found: f"={ord(found[0]):x}=", text)


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
