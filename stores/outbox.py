"""The outbox: what operators and the senders of orders are still to be told, each a row of the agenda (ALR-1, ALR-2).

A row is written with the transition that it tells of, and removed once it was sent. Its key says from when on it may be
sent, `To` where it goes, and `Tries` how often that was refused: never, if there is none.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from core import alerts
from core.agenda import AgendaRow, Kind
from core.changes import Change, Event, HistoryEntry
from core.happenings import Ended, Processed, StepCompleted, StepStarted, Submitted
from core.keys import LAST, key_part, sortable
from core.life import Direction
from core.messages import OPERATORS, BusMessage
from core.orders import Snapshot
from stores.tables import Form

EVENT = Form(Event, texts=("data",))

MAX_PER_TRANSITION = 100
"""More than there are steps in a workflow."""


def notices_of(
    before: Snapshot | None, after: Snapshot, entry: HistoryEntry
) -> Iterator[BusMessage]:
    """Yield what the sender is told of this transition; nothing if it named no queue.

    A notice's id is the same however often it is sent. Its `sequence` grows with each notice of the order: what comes
    out of order can be put right.
    """
    state = after.state
    if state.reply_to is None:
        return
    for number, (event, more) in enumerate(_events(before, after, entry)):
        notice_id = f"{state.order_id}:{state.version}:{number}"
        body = {
            "orderId": state.order_id,
            "event": event,
            "at": entry.at.isoformat(),
            "sequence": state.version * MAX_PER_TRANSITION + number,
            **{name: value for name, value in more.items() if value is not None},
            "noticeId": notice_id,
        }
        yield BusMessage(
            queue=state.reply_to,
            message_id=notice_id,
            correlation_id=state.order_id,
            body=json.dumps(body, ensure_ascii=False),
        )


def _events(
    before: Snapshot | None, after: Snapshot, entry: HistoryEntry
) -> Iterator[tuple[str, dict[str, str | None]]]:
    """Yield the events of which the sender is told, with what is said of each."""
    has_begun = before is not None and any(step.attempts for step in before.steps)
    for each in entry.happened:
        match each:
            case Submitted():
                yield "received", {}
            case StepStarted() if not has_begun:
                has_begun = True
                yield "processing-started", {}
            case StepCompleted(step=step) if after.state.direction is Direction.FORWARD:
                yield "step-completed", {"step": step}
            case Processed() | Ended() if notice := after.state.meaning.notice:
                yield notice, {"reason": each.reason if isinstance(each, Ended) else None}


def owed(before: Snapshot | None, after: Snapshot, change: Change) -> Iterator[AgendaRow]:
    """Yield what operators and the sender are to be told of a change, as it is recorded."""
    yield from (of_event(after.order_id, event) for event in alerts.of(after, change.entry))
    yield from (
        of_notice(notice, change.entry.at) for notice in notices_of(before, after, change.entry)
    )


def of_event(order_id: str, event: Event) -> AgendaRow:
    """Return the obligation to tell operators of an event."""
    key = _key(event.at, f"{key_part(order_id)}|{key_part(event.event_id)}")
    return AgendaRow(key=key, order_id=order_id, data={"To": OPERATORS, **EVENT.columns(event)})


def of_notice(notice: BusMessage, at: datetime) -> AgendaRow:
    """Return the obligation to send a notice."""
    columns = {"To": notice.queue, "NoticeId": notice.message_id, "Body": notice.body}
    return AgendaRow(key=_key(at, notice.message_id), order_id=notice.correlation_id, data=columns)


def content_of(row: AgendaRow) -> Event | BusMessage:
    """Return what is to be sent; raises LookupError, ValueError or TypeError if nobody can read it."""
    if row.data["To"] == OPERATORS:
        return EVENT.record(row.data)
    queue, notice_id, body = (row.data[name] for name in ("To", "NoticeId", "Body"))
    return BusMessage(queue=queue, message_id=notice_id, correlation_id=row.order_id, body=body)


def is_notice(row: AgendaRow) -> bool:
    """Whether it is for a sender; what nobody can read is for the operators."""
    return bool(row.data.get("To", OPERATORS) != OPERATORS)


def due(now: datetime) -> tuple[str, str]:
    """Row-key range [from, to) of what may be sent now."""
    return f"{Kind.OUTBOX}|", _key(now, LAST)


def tries_of(row: AgendaRow) -> int:
    """Return how often it was refused; never, if the row says nothing of it, or nonsense."""
    tries = row.data.get("Tries")
    return tries if isinstance(tries, int) else 0


def put_off(row: AgendaRow, until: datetime, tries: int) -> AgendaRow:
    """Return the row as it is owed from then on; in its key, all but the time stays."""
    return replace(
        row, key=_key(until, row.key.split("|", 2)[-1]), data={**row.data, "Tries": tries}
    )


def _key(not_before: datetime, name: str) -> str:
    return f"{Kind.OUTBOX}|{sortable(not_before)}|{name}"
