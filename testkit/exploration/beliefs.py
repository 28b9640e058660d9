"""What a scheduler's process believes between two events, in worlds in which beliefs last."""

from collections import Counter
from copy import copy
from datetime import datetime
from typing import Any, TypeVar

from engine.ports import Clock
from scheduler.admission.admission import REFRESH_INTERVAL, Admission
from scheduler.admission.claim_queue import (
    ANNOUNCED_FOR,
    NORMAL_PRIORITY_SHARE,
    ClaimQueue,
)
from scheduler.admission.open_requests import OpenRequests

T = TypeVar("T")


def recalled(admission: Admission, clock: Clock) -> Admission:
    """Return a copy to continue with. A remembered belief is never changed."""
    copied = _with_copied_fields(admission)
    copied.clock = clock
    return copied


def _with_copied_fields(record: T) -> T:
    copied = copy(record)
    copied.__dict__.update({name: _copied(value) for name, value in vars(record).items()})
    return copied


def _copied(value: Any) -> Any:
    match value:
        case Counter() | set():
            return copy(value)
        case dict():
            return {key: _copied(member) for key, member in value.items()}
        case OpenRequests() | ClaimQueue():
            return _with_copied_fields(value)
    return value


def next_refresh(admission: Admission) -> datetime:
    return admission._refresh_began + REFRESH_INTERVAL


def closed_until(admission: Admission) -> list[datetime]:
    """Return the times until which the process believes circuits to be open."""
    return [report.open_until for report in admission.health if report.open_until]


def text_of_belief(admission: Admission, now: datetime) -> str:
    """Return a text that distinguishes this belief from others.

    If a refresh is due, everything that it replaces is left out.
    """
    orders = admission.claim_queue
    turns = {needs: turn % NORMAL_PRIORITY_SHARE for needs, turn in orders._turns.items()}
    announced = {name: at for name, at in orders._announced.items() if now - at < ANNOUNCED_FOR}
    skipped = {name: until for name, until in orders._skipped.items() if until > now}
    health = sorted(repr(report) for report in admission.health if report.counts_until > now)
    lasting = (*map(sorted, (turns.items(), announced.items(), skipped.items())), health)
    if now >= next_refresh(admission):
        return repr(lasting)
    running = sorted(admission.open_requests._runs_at.items())
    waiting = [(needs, list(queue.values())) for needs, queue in sorted(orders._queues.items())]
    return repr((*lasting, running, waiting, admission._refresh_began))
