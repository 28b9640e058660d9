"""When timers have something to do.

This is derived from the records, without the shipped work index.
"""

from datetime import datetime

from engine.declarations.workflow import Workflows
from engine.domain import work_index
from engine.domain.keys import sortable
from engine.domain.orders import OrderAggregate, Pending, Processing
from engine.domain.states import AtWork, UnderWay
from engine.domain.work_index import IndexRow, WorkItemKind
from scheduler.service import WAKE_UP_TIME
from testkit.exploration.turns import next_check, ready, stops
from testkit.exploration.world import World


def is_due(world: World, kind: str, now: datetime) -> bool:
    """Whether a timer should find something, or would. A run that finds nothing changes nothing."""
    return any(
        should_find(part, kind, now) or _would_find(part, kind, now) for part in world.parts()
    )


def should_find(world: World, kind: str, now: datetime) -> bool:
    """Whether this timer should find something to do, in a world with one order."""
    order = world.order()
    if kind == "relay":
        waiting = (
            key.split("|") for key in world.work_items() if key.startswith(WorkItemKind.OUTBOX)
        )
        return any(since <= sortable(now) for _, since, *_ in waiting)
    if order is None:
        return False
    if kind == "sweep":
        return _is_overdue(world, order, now)
    return may_go_on(order, world.deployed.workflows) and now >= polled_from(order)


def _is_overdue(world: World, order: OrderAggregate, now: datetime) -> bool:
    """Whether a step or the order is overdue.

    While the order is on hold, the deadline of an external event moves (OPR-7).
    """
    steps = order.in_state(AtWork) if order.hold else order.in_state(UnderWay)
    due = [*(step.state.complete_by for step in steps), next_check(order)]
    return any(time is not None and now > time + world.deployed.tolerance for time in due)


def may_go_on(order: OrderAggregate, workflows: Workflows) -> bool:
    """Whether a step of the order may start or end, now or later (SCH-1)."""
    is_open = isinstance(order.state, Pending | Processing) and not order.hold
    if stops(order):
        return is_open and not order.has_any(AtWork)  # it ends, or is undone (SCH-12)
    return is_open and bool(ready(order, workflows) or not order.has_any(UnderWay))


def polled_from(order: OrderAggregate) -> datetime:
    """Return when a poll claims the order.

    This is the chosen start time, the end of a pause, or the end of the time for its wake-up.
    """
    return order.derived.not_before or order.updated_at + WAKE_UP_TIME


def _would_find(world: World, kind: str, now: datetime) -> bool:
    """Whether the shipped code finds something, which may be too early."""
    rows = world.work_items()
    if kind == "sweep":
        due = now - world.deployed.tolerance
        ranges = [
            work_index.overdue(due, item_kind)
            for item_kind in (WorkItemKind.RUNNING, WorkItemKind.WAITING, WorkItemKind.DEADLINE)
        ]
        return any(start <= key < end for key in rows for start, end in ranges)
    pending = (row for key, row in rows.items() if key.startswith(WorkItemKind.PENDING))
    return kind == "poll" and any(_is_taken(row, now) for row in pending)


def _is_taken(row: IndexRow, now: datetime) -> bool:
    is_left = work_index.was_announced(row) and now - row.data["UpdatedAt"] < WAKE_UP_TIME
    return work_index.may_be_claimed(row, now) and not (is_left or work_index.pauses(row, now))
