"""The outbox: alerts and notifications that are still to be sent, in the work index (ALR-1, ALR-2).

A row is written with its transition, and removed when it was sent. It holds causes, which are put
into words when it is sent (`engine.words.alerts`). Its key contains the time from which it may be
sent. `To` is its destination. `Tries` is the number of refusals, if there were any.
"""

# The pattern in an hour, 22 of 23: the outbox

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import Any

from engine.alerts import events as alerts
from engine.decisions.transitions import HistoryEntry, OperatorEvent, Transition
from engine.domain import exact_json
from engine.domain.events import (
    ExternalEventRecorded,
    OrderEnded,
    OrderProcessed,
    StepCompleted,
    StepSettled,
    StepStarted,
    Submitted,
)
from engine.domain.keys import LAST, key_part, sortable
from engine.domain.messages import OPERATORS, BusMessage
from engine.domain.orders import OrderAggregate
from engine.domain.statuses import STATUS_INFO, OrderStatus
from engine.domain.work_index import IndexRow, WorkItemKind
from engine.features.external_events.notifications import operator_events
from engine.storage import external_events
from engine.storage.tables import RowMapper

EVENT = RowMapper(OperatorEvent, texts=("data",))

MAX_PER_TRANSITION = 100
"""The most notifications of one transition. A workflow has fewer steps than this."""


def notices_of(
    before: OrderAggregate | None,
    after: OrderAggregate,
    entry: HistoryEntry,
    address: str | None = None,
) -> Iterator[BusMessage]:
    """Yield the notifications of this transition, or none if the sender named no reply queue.

    `address` is the public address of the app. Without it, notifications contain no links. A
    notification keeps its id when it is sent again. Its `sequence` grows with each notification of
    the order, so the receiver can sort them.
    """
    if after.reply_to is None:
        return
    events = chain(_events(before, after, entry), external_events.notices(after, entry, address))
    for number, (event, more) in enumerate(events):
        notice_id = f"{after.order_id}:{after.version}:{number}"
        body = {
            "orderId": after.order_id,
            "event": event,
            "at": entry.at.isoformat(),
            "sequence": after.version * MAX_PER_TRANSITION + number,
            **{name: value for name, value in more.items() if value is not None},
            "noticeId": notice_id,
        }
        yield BusMessage(
            queue=after.reply_to,
            message_id=notice_id,
            correlation_id=after.order_id,
            body=exact_json.write(body),
        )


def _events(
    before: OrderAggregate | None, after: OrderAggregate, entry: HistoryEntry
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the event name of each notification, with its further fields."""
    has_begun = before is not None and any(step.counts.attempts for step in before.steps)
    for event in entry.events:
        match event:
            case Submitted():
                yield "received", {}
            case StepStarted() if not has_begun:
                has_begun = True
                yield "processing-started", {}
            case (
                StepCompleted(step=step)
                | ExternalEventRecorded(step=step)
                | StepSettled(step=step, was_done=True)
            ) if not after.is_undo:
                yield "step-completed", {"step": step}
            case OrderProcessed():
                yield _notice_of(OrderStatus.PROCESSED), {}
            case OrderEnded(outcome=outcome, cause=cause):
                yield _notice_of(OrderStatus(outcome)), {"reason": cause and cause.as_json()}


def _notice_of(end: OrderStatus) -> str:
    """Return the event name of the notification about this end of an order."""
    return STATUS_INFO[end].notice or str(end)


def rows_of(transition: Transition, address: str | None = None) -> Iterator[IndexRow]:
    """Yield the outbox rows of a transition: its alerts, and its notifications to the sender.

    `address` is the public address of the app.
    """
    before, after = transition.before, transition.after
    for event in (*alerts.of(after, transition.entry), *operator_events(after, transition.entry)):
        yield of_event(after.order_id, event)
    for notice in notices_of(before, after, transition.entry, address):
        yield of_notice(notice, transition.entry.at)


def of_event(order_id: str, event: OperatorEvent) -> IndexRow:
    """Make the outbox row of an event for operators."""
    key = _key(event.at, f"{key_part(order_id)}|{key_part(event.event_id)}")
    return IndexRow(key=key, order_id=order_id, data={"To": OPERATORS, **EVENT.columns(event)})


def of_notice(notice: BusMessage, at: datetime) -> IndexRow:
    """Make the outbox row of a notification."""
    columns = {"To": notice.queue, "NoticeId": notice.message_id, "Body": notice.body}
    return IndexRow(key=_key(at, notice.message_id), order_id=notice.correlation_id, data=columns)


def content_of(row: IndexRow) -> OperatorEvent | BusMessage:
    """Read the event or notification. Raises LookupError, ValueError or TypeError if unreadable."""
    if row.data["To"] == OPERATORS:
        return EVENT.record(row.data)
    queue, notice_id, body = (row.data[name] for name in ("To", "NoticeId", "Body"))
    return BusMessage(queue=queue, message_id=notice_id, correlation_id=row.order_id, body=body)


def is_notice(row: IndexRow) -> bool:
    """Whether the row is a notification. An unreadable row counts as an event for operators."""
    return bool(row.data.get("To", OPERATORS) != OPERATORS)


def due(now: datetime) -> tuple[str, str]:
    """Return the range of row keys, from start to before end, of rows that may be sent now."""
    return f"{WorkItemKind.OUTBOX}|", _key(now, LAST)


def tries_of(row: IndexRow) -> int:
    """Return the number of refusals. Zero if the column is missing or invalid."""
    tries = row.data.get("Tries")
    return tries if isinstance(tries, int) else 0


def postponed(row: IndexRow, until: datetime, tries: int) -> IndexRow:
    """Return the row with a later time in its key, from which it may be sent, and its refusals."""
    name = row.key.split("|", 2)[-1]
    return replace(row, key=_key(until, name), data={**row.data, "Tries": tries})


def _key(not_before: datetime, name: str) -> str:
    return f"{WorkItemKind.OUTBOX}|{sortable(not_before)}|{name}"
