"""What a scheduler's process believes between two events, where a world lets that outlive them."""

from collections import Counter
from copy import copy
from datetime import datetime
from typing import Any

from core.ports import Clock
from scheduler.admission import LOOK_INTERVAL, TURN_OF_NORMAL, Admission, ConcurrencyWindow


def recalled(admission: Admission, clock: Clock) -> Admission:
    """A copy to go on with; what is remembered is never changed."""
    copied = copy(admission)
    copied.__dict__.update({name: _copied(value) for name, value in vars(admission).items()}, clock=clock)
    return copied


def _copied(value: Any) -> Any:
    match value:
        case Counter() | ConcurrencyWindow():
            return copy(value)
        case dict():
            return {key: _copied(each) for key, each in value.items()}
    return value


def next_look(admission: Admission) -> datetime:
    """From when on its process looks again."""
    return admission._looked_at + LOOK_INTERVAL


def text_of_belief(admission: Admission, now: datetime) -> str:
    """What tells this belief from others: nothing that the next look overrules, once it is time for one."""
    turns = sorted((needs, turn % TURN_OF_NORMAL) for needs, turn in admission._turns.items())
    waiting = [(*claim_lane, list(waiting.values())) for claim_lane, waiting in sorted(admission._claim_lanes.items())]
    lasting = (waiting, turns, admission._passed_over, admission._closed, admission._windows)
    if now >= next_look(admission):
        return repr(lasting)
    orders = sorted({**(admission._seen or {}), **admission._done}.items())
    return repr((*lasting, orders, admission._looked_at))
