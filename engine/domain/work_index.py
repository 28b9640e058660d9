"""The work index: row keys that say what is due for an order, and in which list it is.

The rows follow from the order alone, so no transition has to maintain them. An order that is over
has one row, which lists it. So a periodic query never depends on the number of orders ever recorded
(SUP-2).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from engine.domain.keys import LAST, newest_first, sortable, time_of
from engine.domain.orders import InError, OrderAggregate, Pending, Processed, WorkItem
from engine.domain.states import AtWork, AwaitingExternalEvent, UnderWay
from engine.domain.statuses import Outcome, ProcessState
from engine.domain.steps import Step, StepIn
from engine.domain.submitted_order import Priority


class WorkItemKind(StrEnum):
    """The kind of work that is due for an order. It is the prefix of the row key."""

    PENDING = "!pending"
    """A scheduler has to claim the order. There is a row in the lane of each capability that a
    ready step needs."""
    RUNNING = "!running"
    """The supervisor has to check the order at the complete-by time of a step that an agent has."""
    WAITING = "!waiting"
    """The supervisor has to check the order at the complete-by time of a step that waits for an
    external event."""
    DEADLINE = "!due"
    """The supervisor has to check the order when it has to warn of the deadline, and again at the
    deadline (SCH-17)."""
    ERROR = "!error"
    """An operator has to act."""
    HELD = "!held"
    """An operator has to release the order."""
    OUTBOX = "!outbox"
    """An alert or a notification has to be sent."""
    ENDED = "_ended"
    """Nothing is due. The row lists an order that is over."""


DUE = tuple(kind for kind in WorkItemKind if kind.startswith("!"))
"""The kinds of rows that are read by their due time."""


def checked_kinds(*, has_deadlines: bool) -> tuple[WorkItemKind, ...]:
    """Return the kinds of rows that a supervisor checks once their time has passed (SUP-2)."""
    attempts = WorkItemKind.RUNNING, WorkItemKind.WAITING
    return (*attempts, WorkItemKind.DEADLINE) if has_deadlines else attempts


ENDED_PREFIX = f"{WorkItemKind.ENDED}|"
"""The prefix of the rows that list orders which are over. Nothing is due for them."""


ACTED_PREFIX = "_acted|"
"""The prefix of the rows that list operators' actions, the newest first."""

RANK = {Priority.HIGH: "0", Priority.NORMAL: "1"}
"""The part of the key of a lane that puts high priority first (SCH-11)."""

NO_AGENT = "-"
"""The capability in the key of a claim that needs no agent."""

RANKED = {rank: priority for priority, rank in RANK.items()}

LATER = "later"
"""The part of the key of a claim that waits for a chosen time. The time follows."""


def work_items(order: OrderAggregate, now: datetime, ready_since: datetime) -> Iterator[WorkItem]:
    """Yield the work items of the order after a transition at this time.

    Exactly one of them lists the order (OPR-1): the first item of the kind that `list_of` returns.
    """
    if order.is_over:
        yield _end(order, now)
    else:
        yield from _open(order, now, ready_since)


def list_of(order: OrderAggregate) -> WorkItemKind:
    """Return the kind of rows in which lists show the order.

    An order that waits for an external event is in one list, whatever else it does. A pending order
    that no claim could continue is in the list of running orders.
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
    """Return the prefix of the row keys of claims of this priority and capability (SCH-1)."""
    # Separate lanes: orders whose agents have no capacity do not block others.
    return f"{WorkItemKind.PENDING}|{RANK[priority]}|{capability}|"


def capability_of(step: Step) -> str:
    """Return the lane of a claim that starts this step."""
    return NO_AGENT if step.is_external else step.rules.capability


def first_need(order: OrderAggregate, ready_since: datetime) -> str:
    """Return the capability of the first step that a claim starts, or `NO_AGENT`."""
    first = min(order.ready, key=lambda step: _turn(step, ready_since), default=None)
    return NO_AGENT if first is None else capability_of(first)


def _open(order: OrderAggregate, now: datetime, ready_since: datetime) -> Iterator[WorkItem]:
    if order.blocked() is None:
        yield from _claims(order, now, ready_since)
    if at_work := order.in_state(AtWork):
        yield _item(order, WorkItemKind.RUNNING, sortable(_first_due(at_work)))
    awaited = order.in_state(AwaitingExternalEvent)
    if awaited and not order.hold:  # the release moves the deadline (OPR-7)
        yield _item(order, WorkItemKind.WAITING, sortable(_first_due(awaited)))
    deadline = order.pending_deadline
    if deadline and (at := deadline.next_check):
        key = f"{WorkItemKind.DEADLINE}|{sortable(at)}|{order.order_id}"
        yield WorkItem(key=key, is_first=False)
    if isinstance(order.state, InError):
        yield _item(order, WorkItemKind.ERROR, sortable(now))
    if order.hold:
        yield _item(order, WorkItemKind.HELD, sortable(order.hold.since))


def _item(order: OrderAggregate, kind: WorkItemKind, place: str) -> WorkItem:
    return WorkItem(key=f"{kind}|{place}|{order.order_id}")


def _claims(order: OrderAggregate, now: datetime, ready_since: datetime) -> Iterator[WorkItem]:
    """Yield the place of the order in the lane of each capability that its ready steps need."""
    ready = sorted(order.ready, key=lambda step: _turn(step, ready_since))
    # A step whose agent has no capacity does not block another step from its own agent.
    lanes: dict[str, list[Step]] = {}
    for step in ready:
        lanes.setdefault(capability_of(step), []).append(step)
    for number, (capability, steps) in enumerate((lanes or {NO_AGENT: []}).items()):
        lane = claim_lane(order.priority, capability)
        not_before = _first_start(order, steps, now)
        place = sortable(ready_since)
        if not_before and not is_pause(order, steps, not_before):
            place = f"{LATER}|{sortable(not_before)}"
        key = f"{lane}{place}|{order.order_id}"
        yield WorkItem(key=key, not_before=not_before, is_first=number == 0)


def _turn(step: Step, ready_since: datetime) -> tuple[datetime, bool]:
    return step.not_before or ready_since, not step.is_external


def _first_start(order: OrderAggregate, steps: Iterable[Step], now: datetime) -> datetime | None:
    first = min((order.starts_at(step) or now for step in steps), default=now)
    return first if first > now else None


def is_pause(order: OrderAggregate, steps: Iterable[Step], until: datetime) -> bool:
    """Return whether this start ends a pause, so the order keeps its place and age (SCH-16)."""
    return any(step.is_backing_off and order.starts_at(step) == until for step in steps)


def _first_due(steps: Iterable[StepIn[UnderWay]]) -> datetime:
    return min(step.state.complete_by for step in steps)


def _end(order: OrderAggregate, now: datetime) -> WorkItem:
    """Return the row that lists an order which is over. Its last change is its end."""
    name = "processed" if isinstance(order.state, Processed) else Outcome.UNDONE
    return _item(order, WorkItemKind.ENDED, f"{name}|{newest_first(now)}")


# Reading the rows


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexRow:
    """One open work item.

    `data` has the columns that lists show without loading the order, or the message to send.
    Readers have to expect that a field of `data` is missing or invalid. Only this row is affected.
    """

    key: str
    order_id: str
    data: Mapping[str, Any] = field(default_factory=dict)
    fault: str = ""
    """The reason why the row cannot be read, or empty. Then the row has no data, but its key still
    names the work item, the order and the time."""


def all_of(kind: WorkItemKind) -> tuple[str, str]:
    """Return the row-key range [from, to) of every work item of this kind."""
    return f"{kind}|", f"{kind}|{LAST}"


def everything() -> tuple[str, str]:
    """Return the row-key range [from, to) of all work items that are due, sorted by kind."""
    return f"{min(DUE)}|", f"{max(DUE)}|{LAST}"


def lane_of(pending: IndexRow) -> tuple[Priority, str]:
    """Return the priority and the capability of a pending order.

    Raises `LookupError` or `ValueError` if its key does not name them.
    """
    _, rank, needs, *_ = pending.key.split("|")
    return RANKED[rank], needs


def end_of_claim_lane(pending: IndexRow) -> str:
    """Return the row key after which the orders of the next priority or capability follow."""
    return "|".join([*pending.key.split("|")[:3], LAST])


def since(row: IndexRow) -> datetime:
    """Return the time in the key of an order's work item.

    Raises `ValueError` if the key has none.
    """
    return time_of(row.key.split("|")[-2])


def may_be_claimed(pending: IndexRow, due: datetime) -> bool:
    """Return whether the order may be claimed at `due`.

    If so, all orders before it in its lane may be claimed too. Only a chosen time prevents the
    claim, and the rows with a chosen time follow all others in the lane.
    """
    # The other times are not compared: they may come from a process whose clock is ahead.
    return pending.key.split("|", 3)[-1] <= f"{LATER}|{sortable(due)}|{LAST}"


def is_ready_after(pending: IndexRow, time: datetime) -> bool:
    """Return whether the order began to wait after `time`, and waits for no chosen time."""
    place = pending.key.split("|", 3)[-1]
    return f"{sortable(time)}|{LAST}" < place < LATER


def waiting_since(pending: IndexRow, time: datetime) -> IndexRow:
    """Return the row of an order without a chosen time as if it had begun to wait at `time`."""
    *lane, _, order_id = pending.key.split("|")
    return replace(pending, key="|".join([*lane, sortable(time), order_id]))


def pauses(pending: IndexRow, now: datetime) -> bool:
    """Return whether the order waits for the end of a pause, and keeps its place in the lane."""
    until: datetime | None = pending.data.get("NotBefore")
    return until is not None and until > now


def was_announced(pending: IndexRow) -> bool:
    """Return whether a wake-up for the order was sent after its last change.

    None is sent for an order that waits for a chosen time or for the end of a pause. None is sent
    for an order in `Processing` either, because its scheduler handles it.
    """
    waits = pending.key.split("|")[3] == LATER or "NotBefore" in pending.data
    return not waits and pending.data["ProcessState"] == ProcessState.PENDING


def ahead(pending: IndexRow, time: datetime) -> tuple[str, str]:
    """Return the row-key range [from, to) of the lane's orders that began to wait after `time`."""
    claim_lane = "|".join(pending.key.split("|")[:3])
    return f"{claim_lane}|{sortable(time)}|{LAST}", f"{claim_lane}|{LATER}"


def due_later(pending: IndexRow, due: datetime) -> tuple[str, str]:
    """Return the row-key range [from, to) of the lane's orders with a chosen time up to `due`."""
    claim_lane = "|".join(pending.key.split("|")[:3])
    return f"{claim_lane}|{LATER}|", f"{claim_lane}|{LATER}|{sortable(due)}|{LAST}"


def waiting_and_running() -> tuple[str, str]:
    """Return the row-key range [from, to) of pending and running orders, the pending ones first."""
    return f"{WorkItemKind.PENDING}|", f"{WorkItemKind.RUNNING}|{LAST}"


def in_time(now: datetime) -> tuple[str, str]:
    """Return the row-key range [from, to) of orders with running steps, none of them overdue."""
    return f"{WorkItemKind.RUNNING}|{sortable(now)}", f"{WorkItemKind.RUNNING}|{LAST}"


def overdue(now: datetime, kind: WorkItemKind = WorkItemKind.RUNNING) -> tuple[str, str]:
    """Return the row-key range [from, to) of orders with a step past its complete-by time (SUP-2).

    With the kind `WAITING`, the external event of the step is overdue. With `DEADLINE`, the order
    is due or due soon (SCH-17).
    """
    return f"{kind}|", f"{kind}|{sortable(now)}"


def held_before(time: datetime) -> tuple[str, str]:
    """Return the row-key range [from, to) of the orders on hold since before `time`."""
    return f"{WorkItemKind.HELD}|", f"{WorkItemKind.HELD}|{sortable(time)}"
