"""Which rows a change writes: the one place that says so, for the tables and for the store in memory alike."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from core.agenda import AgendaRow, notice_key, outbox_key
from core.changes import Change, Event, HistoryEntry, Note, OutboxEntry
from core.errors import UnreadableRowError
from core.keys import history_key, order_key, state_key, step_key
from core.notices import Notice, notices_of
from core.orders import Order, OrderState, Snapshot, Step

Record = Order | OrderState | Step | HistoryEntry | AgendaRow


@dataclass(frozen=True, slots=True)
class Create:
    """Insert a row that must not exist."""

    key: str
    record: Record


@dataclass(frozen=True, slots=True)
class Replace:
    """Overwrite a row that must be as it was under this ETag."""

    key: str
    record: Record
    etag: str


@dataclass(frozen=True, slots=True)
class Put:
    """Insert or overwrite a row that follows from others, under whose ETags it is written."""

    key: str
    record: Record


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a row that must exist."""

    key: str


Write = Create | Replace | Put | Delete


def of_change(change: Change) -> list[Write]:
    """Return all writes of a change; together they are one transaction."""
    order_id, after = change.after.order_id, change.recorded()
    met, new = change.agenda_difference()
    etags = change.before.etags if change.before else {}
    same_order = change.before and change.before.order == after.order
    records: dict[str, Record] = {} if same_order else {order_key(order_id): after.order}
    records[state_key(order_id)] = after.state
    records |= {step_key(order_id, step.number): step for step in change.changed_steps()}
    return [
        *(_write(key, record, etags) for key, record in records.items()),
        Create(history_key(order_id, after.state.version), change.entry),
        *(Delete(key) for key in met),
        *(Put(row.key, _without_nulls(row)) for row in new),
        *(Create(row.key, row) for row in (outbox_row(order_id, event) for event in change.events)),
        *(Create(row.key, row) for row in map(notice_row, notices_of(change.before, after, change.entry.at))),
    ]


def of_note(note: Note) -> list[Write]:
    """Return the writes of a note."""
    history = Create(history_key(note.order_id, note.version, key_part(note.note_id)), note.entry)
    outbox = (outbox_row(note.order_id, event) for event in note.events)
    return [history, *(Create(row.key, row) for row in outbox)]


def of_announcement(event: Event) -> Write:
    """Return the write that puts an event of no recorded order into the outbox."""
    row = outbox_row(event.subject.removeprefix("orders/"), event)
    return Create(row.key, row)


def _write(key: str, record: Record, etags: Mapping[str, str]) -> Write:
    return Replace(key, record, etags[key]) if key in etags else Create(key, record)


def committed(change: Change, etags: Mapping[str, str]) -> Snapshot:
    """Return the order after its change, from the ETags of the rows that were written."""
    known = {**(change.before.etags if change.before else {}), **etags}
    return replace(change.recorded(), etags={key: etag for key, etag in known.items() if key in _loaded_keys(change)})


def _loaded_keys(change: Change) -> set[str]:
    """Return the keys of the rows that loading the order returns."""
    order_id = change.after.order_id
    return {order_key(order_id), state_key(order_id), *(step_key(order_id, s.number) for s in change.after.steps)}


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


def json_text(value: Any) -> str:
    """Return the value as compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict)


def key_part(text: str) -> str:
    """Return the text with what a row key cannot hold, or what would upset its order, escaped as `=<hex>=`."""
    return re.sub(r"[^A-Za-z0-9_.:|-]", lambda found: f"={ord(found[0]):x}=", text)


def aware(time: datetime) -> datetime:
    """Return the time as it is; raises ValueError if it has no zone."""
    if time.tzinfo is None:
        raise ValueError("a time without a zone means nothing to another machine")
    return time


def snapshot_of(rows: Iterable[tuple[str, Record, str]]) -> Snapshot | None:
    """Return the order from its rows, each with key and ETag; None if there are none.

    Raises `UnreadableRowError` if a step is missing: what is left would pass for an order that needs no more.
    """
    order: Order | None = None
    state: OrderState | None = None
    steps: list[Step] = []
    etags: dict[str, str] = {}
    for key, record, etag in rows:
        match record:
            case Order():
                order = record
            case OrderState():
                state = record
            case Step():
                steps.append(record)
        etags[key] = etag
    if order is None or state is None:
        return None
    steps.sort(key=lambda step: step.number)
    if not steps or any(step.number != number for number, step in enumerate(steps)):
        raise UnreadableRowError(f"order {order.order_id} cannot be read: the row of a step is missing")
    return Snapshot(order=order, state=state, steps=tuple(steps), etags=etags)
