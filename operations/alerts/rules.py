"""When unsent rows are sent again, and how to read an alert that arrives.

An alert is a CloudEvent, either plain or in base64, which Event Grid uses for queues.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, TypeGuard

from pydantic import BaseModel, ConfigDict, Field

from engine.alerts import events as alerts
from engine.decisions.transitions import OperatorEvent
from engine.domain.errors import QueueRefusedError, UnavailableError
from engine.domain.messages import Moment, decode_queued
from engine.domain.work_index import IndexRow
from engine.storage import outbox

QUEUE = "operator-alerts"


class CloudEvent(BaseModel):
    """The parts of a CloudEvent 1.0 that an alert uses. Other parts are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    specversion: Literal["1.0"]
    id: Annotated[str, Field(min_length=1, max_length=200)]
    type: Annotated[str, Field(max_length=200)]
    subject: Annotated[str, Field(max_length=200)] = ""
    time: Moment
    data: Mapping[str, Any]


def read(body: bytes) -> OperatorEvent:
    """Read an alert from its queue. Raises `InvalidError`."""
    event = decode_queued(CloudEvent, body)
    return OperatorEvent(
        event_id=event.id, type=event.type, subject=event.subject, at=event.time, data=event.data
    )


Delivery = tuple[IndexRow, Exception | None]
"""A row of the outbox with the reason why it was not sent. None if it was sent."""

LONGEST_PAUSE = timedelta(minutes=5)


def is_silence(fault: Exception | None) -> TypeGuard[UnavailableError]:
    """Whether there was no answer: the destination or its whole service may be unavailable."""
    return isinstance(fault, UnavailableError) and not isinstance(fault, QueueRefusedError)


def answered(outcomes: Iterable[Delivery]) -> set[str]:
    """Return the destinations that accepted or refused a message. Other errors show nothing."""
    return {
        row.data["To"]
        for row, fault in outcomes
        if fault is None or isinstance(fault, QueueRefusedError)
    }


def counts(row: IndexRow, fault: Exception, answered: Collection[str]) -> bool:
    """Whether the failure counts as an attempt: a refusal, or silence of this destination alone."""
    return not is_silence(fault) or (bool(answered) and row.data["To"] not in answered)


def successor(
    row: IndexRow, fault: Exception, now: datetime, max_tries: int, *, counts: bool
) -> IndexRow:
    """Return the row that replaces an unsent notification.

    It has the same content at a later time, or is the alert that the notification was dropped.
    """
    tries = outbox.tries_of(row) + counts
    if counts and tries >= max_tries:
        alert = alerts.notice_given_up(row.order_id, row.data["To"], str(fault), now)
        return outbox.of_event(row.order_id, alert)
    return outbox.postponed(row, now + pause(tries), tries)


def pause(tries: int) -> timedelta:
    """Return the pause after this many attempts."""
    return min(LONGEST_PAUSE, timedelta(seconds=2 ** min(tries, 10)))
