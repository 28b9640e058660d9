"""What a scheduler's process believes between two events, where a world lets that outlive them."""

from collections import Counter
from copy import copy
from datetime import datetime
from typing import Any

from engine.ports import Clock
from scheduler.admission import ANNOUNCED_FOR, NORMAL_PRIORITY_SHARE, REFRESH_INTERVAL, Admission


def recalled(admission: Admission, clock: Clock) -> Admission:
    """A copy to go on with; what is remembered is never changed."""
    copied = copy(admission)
    copied.__dict__.update(
        {name: _copied(value) for name, value in vars(admission).items()}, clock=clock
    )
    return copied


def _copied(value: Any) -> Any:
    match value:
        case Counter() | set():
            return copy(value)
        case dict():
            return {key: _copied(member) for key, member in value.items()}
    return value


def next_refresh(admission: Admission) -> datetime:
    """From when on its process looks again."""
    return admission._refreshed_at + REFRESH_INTERVAL


def closed_until(admission: Admission) -> list[datetime]:
    """Until when it believes circuits to be open."""
    return [report.open_until for report in admission.health if report.open_until]


def text_of_belief(admission: Admission, now: datetime) -> str:
    """What tells this belief from others.

    What the next look overrules, once it is time for one, is left out.
    """
    turns = {needs: turn % NORMAL_PRIORITY_SHARE for needs, turn in admission._turns.items()}
    announced = {name: at for name, at in admission._announced.items() if now - at < ANNOUNCED_FOR}
    passed_over = {name: until for name, until in admission._passed_over.items() if until > now}
    health = sorted(repr(report) for report in admission.health if report.counts_until > now)
    lasting = (*map(sorted, (turns.items(), announced.items(), passed_over.items())), health)
    if now >= next_refresh(admission):
        return repr(lasting)
    running = sorted(admission._runs_at.items())
    waiting = [(needs, list(queue.values())) for needs, queue in sorted(admission._queues.items())]
    return repr((*lasting, running, waiting, admission._refreshed_at))
