"""When timers have something to do.

What they should find is read off the records: the shipped agenda is not asked.
"""

from datetime import datetime

from core import agenda
from core.agenda import AgendaRow, Kind
from core.keys import sortable
from core.life import ENDED, Direction, StepState
from core.orders import OUTSIDE, Snapshot, Step
from core.workflow import Workflows
from kit.exploration.turns import at_work, ready
from kit.exploration.world import World
from scheduler.service import WAKE_UP_TIME


def is_due(world: World, kind: str, now: datetime) -> bool:
    """Whether a timer should find something, or would; a run that finds nothing changes nothing."""
    return any(
        should_find(part, kind, now) or _would_find(part, kind, now) for part in world.each()
    )


def should_find(world: World, kind: str, now: datetime) -> bool:
    """Whether there is something for this timer to do, of the one order of this world."""
    order = world.order()
    if kind == "relay":
        waiting = (key.split("|") for key in world.agenda() if key.startswith(Kind.OUTBOX))
        return any(since <= sortable(now) for _, since, *_ in waiting)
    if order is None:
        return False
    if kind == "sweep":
        return any(_is_overdue(world, order, step, now) for step in order.steps)
    return may_go_on(order, world.deployed.workflows) and now >= polled_from(order)


def _is_overdue(world: World, order: Snapshot, step: Step, now: datetime) -> bool:
    """Whether a step is; the deadline of an answer from outside moves while it is held (OPR-7)."""
    if step.complete_by is None or (order.state.held_since and step.capability == OUTSIDE):
        return False
    return now > step.complete_by + world.deployed.tolerance


def may_go_on(order: Snapshot, workflows: Workflows) -> bool:
    """Whether something of the order may start or end, sooner or later (SCH-1)."""
    is_open = order.state.process_state not in ENDED and order.state.held_since is None
    if order.state.direction is Direction.FORWARD and order.in_state(StepState.FAILED):
        return is_open and not at_work(order)  # it ends, or is undone (SCH-12)
    return is_open and bool(ready(order, workflows) or not order.running())


def polled_from(order: Snapshot) -> datetime:
    """From when on a poll takes it.

    That is the time that was chosen, or the end of a pause, or when its wake-up has had its time.
    """
    return order.state.not_before or order.state.updated_at + WAKE_UP_TIME


def _would_find(world: World, kind: str, now: datetime) -> bool:
    """Whether the shipped code finds something, which may be too early."""
    rows = world.agenda()
    if kind == "sweep":
        due = now - world.deployed.tolerance
        ranges = [agenda.overdue(due, each) for each in (Kind.RUNNING, Kind.WAITING)]
        return any(start <= key < end for key in rows for start, end in ranges)
    pending = (row for key, row in rows.items() if key.startswith(Kind.PENDING))
    return kind == "poll" and any(_is_taken(row, now) for row in pending)


def _is_taken(row: AgendaRow, now: datetime) -> bool:
    is_left = agenda.was_announced(row) and now - row.data["UpdatedAt"] < WAKE_UP_TIME
    return agenda.may_be_claimed(row, now) and not (is_left or agenda.pauses(row, now))
