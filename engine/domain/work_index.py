"""The work index: row keys that say what is due for an order, and in which list it is.

They follow from the order alone, so no transition has to remember them. What is over has one row,
which lists it, so a periodic query never depends on how many orders were ever recorded (SUP-2).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum

from core.keys import LAST, newest_first, sortable
from core.life import Outcome
from core.orders import Priority
from engine.domain.orders import InError, Order, Pending, Processed, WorkItem
from engine.domain.states import AtWork, AwaitingExternalEvent, UnderWay
from engine.domain.steps import Step, StepIn


class WorkItemKind(StrEnum):
    """What is due for an order; the prefix of the row key."""

    PENDING = "!pending"
    """A claim, in the lane of each capability that a ready step needs."""
    RUNNING = "!running"
    """A check at the complete-by time of a step that an agent has."""
    WAITING = "!waiting"
    """A check at the deadline of an external event."""
    ERROR = "!error"
    """An operator's action."""
    HELD = "!held"
    """An operator's release."""
    ENDED = "_ended"
    """Nothing: the row lists an order that is over."""


RANK = {Priority.HIGH: "0", Priority.NORMAL: "1"}
"""The part of a lane's key by which high priority comes first (SCH-11)."""

NO_AGENT = "-"
"""The capability in the key of a claim that needs no agent."""

LATER = "later"
"""The part of the key of a claim that waits for a chosen time, which follows."""


def work_items(order: Order, now: datetime, ready_since: datetime) -> Iterator[WorkItem]:
    """Yield the work items of the order as it is after a transition at this time.

    Exactly one of them lists the order (OPR-1): the first of the kind that `list_of` returns.
    """
    for item in [_end(order, now)] if order.is_over else _open(order, now, ready_since):
        yield replace(item, key=f"{item.key}|{order.order_id}")


def list_of(order: Order) -> WorkItemKind:
    """Return the kind of rows among which lists show the order.

    All that is awaited from outside is in one list. A pending order that no claim could go on with
    is in the list of those on which an agent works.
    """
    if order.is_over:
        return WorkItemKind.ENDED
    if isinstance(order.state, InError):
        return WorkItemKind.ERROR
    if order.hold:
        return WorkItemKind.HELD
    if order.has_any(AwaitingExternalEvent):
        return WorkItemKind.WAITING
    is_claimable = isinstance(order.state, Pending) and order.blocked() is None
    is_worked_on = order.has_any(AtWork) and not is_claimable
    return WorkItemKind.RUNNING if is_worked_on else WorkItemKind.PENDING


def claim_lane(priority: Priority, capability: str) -> str:
    """Return the prefix of the row keys of claims of this priority and capability (SCH-1).

    They wait apart, so that orders whose agents have no capacity do not block others.
    """
    return f"{WorkItemKind.PENDING}|{RANK[priority]}|{capability}|"


def capability_of(step: Step) -> str:
    """Return the lane of a claim that starts this step."""
    return NO_AGENT if step.is_external else step.rules.capability


def first_need(order: Order, ready_since: datetime) -> str:
    """Return the capability of the first step that a claim starts; `NO_AGENT` if it needs none."""
    first = min(order.ready, key=lambda step: _turn(order, step, ready_since), default=None)
    return NO_AGENT if first is None else capability_of(first)


def may_be_claimed(key: str, now: datetime) -> bool:
    """Whether the claim of this row key is due.

    One that waits for no chosen time always is: the clock of the host that wrote the row may be
    ahead, and no claim waits for it (SCH-1).
    """
    place = key.split("|", 3)[-1]
    return not place.startswith(f"{LATER}|") or place <= f"{LATER}|{sortable(now)}|{LAST}"


def _open(order: Order, now: datetime, ready_since: datetime) -> list[WorkItem]:
    items = [] if order.blocked() else list(_claims(order, now, ready_since))
    items += _first_due(WorkItemKind.RUNNING, order.in_state(AtWork))
    if not order.hold:  # the release moves the deadline (OPR-7)
        items += _first_due(WorkItemKind.WAITING, order.in_state(AwaitingExternalEvent))
    if isinstance(order.state, InError):
        items.append(WorkItem(key=f"{WorkItemKind.ERROR}|{sortable(now)}"))
    if order.hold:
        items.append(WorkItem(key=f"{WorkItemKind.HELD}|{sortable(order.hold.since)}"))
    return items


def _claims(order: Order, now: datetime, ready_since: datetime) -> Iterator[WorkItem]:
    """Yield the place of the order in the lane of each capability that its ready steps need.

    A step whose agent has no capacity does not keep another step from its own agent.
    """
    ready = sorted(order.ready, key=lambda step: _turn(order, step, ready_since))
    lanes: dict[str, list[Step]] = {}
    for step in ready:
        lanes.setdefault(capability_of(step), []).append(step)
    for number, (capability, steps) in enumerate((lanes or {NO_AGENT: []}).items()):
        lane = claim_lane(order.priority, capability)
        not_before = _first_start(order, steps, now)
        place = sortable(ready_since)
        if not_before and not is_pause(order, steps, not_before):
            place = f"{LATER}|{sortable(not_before)}"
        yield WorkItem(key=f"{lane}{place}", not_before=not_before, is_first=number == 0)


def _turn(order: Order, step: Step, ready_since: datetime) -> tuple[datetime, bool]:
    return step.not_before or ready_since, not step.is_external


def _first_start(order: Order, steps: Iterable[Step], now: datetime) -> datetime | None:
    first = min((order.starts_at(step) or now for step in steps), default=now)
    return first if first > now else None


def is_pause(order: Order, steps: Iterable[Step], until: datetime) -> bool:
    """Whether this start is the end of a pause: the order keeps its place and age (SCH-16)."""
    return any(step.is_backing_off and order.starts_at(step) == until for step in steps)


def _first_due(kind: WorkItemKind, steps: Sequence[StepIn[UnderWay]]) -> Iterator[WorkItem]:
    if steps:
        yield WorkItem(key=f"{kind}|{sortable(min(step.state.complete_by for step in steps))}")


def _end(order: Order, now: datetime) -> WorkItem:
    """Return the row that lists an order which is over: its last change is its end."""
    name = "processed" if isinstance(order.state, Processed) else Outcome.UNDONE
    return WorkItem(key=f"{WorkItemKind.ENDED}|{name}|{newest_first(now)}")
