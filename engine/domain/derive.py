"""The values that follow from an order's steps and verbs, computed once for each transition.

No other code sets `complete_by`, `locked_by`, `not_before`, `ready_since` or a work item.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from engine.domain import work_index
from engine.domain.orders import Derived, OrderAggregate, Pending, Processing
from engine.domain.states import AtWork, SettledStep, Startable, UndoPending
from engine.domain.steps import Step


def changed(before: OrderAggregate | None, after: OrderAggregate, now: datetime) -> OrderAggregate:
    """Return the next version of an order. An order that is over is released from its hold.

    `before` is None for a new order. `now` is the time by this host's clock.
    """
    if after.is_over and after.hold:
        after = after.release()
    version = before.version + 1 if before else 1
    return replace(after, version=version, updated_at=now, derived=derive(before, after, now))


def amended(before: OrderAggregate, after: OrderAggregate) -> OrderAggregate:
    """Return the next version of an order whose records changed, for example by an erasure.

    No event of the order happened, so its age, its place in lists and its retention stay.
    """
    at, version = before.updated_at, before.version + 1
    return as_of(at, replace(after, version=version, derived=before.derived))


def as_of(at: datetime, order: OrderAggregate) -> OrderAggregate:
    """Return the order with this time as its last change, and the work items of that time."""
    items = tuple(work_index.work_items(order, at, order.derived.ready_since))
    return replace(order, updated_at=at, derived=replace(order.derived, work_items=items))


def derive(before: OrderAggregate | None, after: OrderAggregate, now: datetime) -> Derived:
    not_before = after.next_start(now)
    is_chosen = not_before is not None and not work_index.is_pause(after, after.ready, not_before)
    ready_since = not_before if not_before and is_chosen else _ready_since(before, after, now)
    return Derived(
        complete_by=_complete_by(after),
        locked_by=_locked_by(after),
        not_before=not_before,
        ready_since=ready_since,
        work_items=tuple(work_index.work_items(after, now, ready_since)),
    )


def _complete_by(order: OrderAggregate) -> datetime | None:
    """Return the first complete-by time of the running attempts (SCH-2).

    For a pending order, return the latest complete-by time that the supervisor gave to the next
    attempts (SUP-3). The time is never later than a deadline that is ahead (SCH-17).
    """
    found = None
    match order.state:
        case Processing():
            found = min(
                (step.complete_by for step in order.steps if step.complete_by), default=None
            )
        case Pending():
            found = max(
                (step.retry_by for step in _tried_next(order) if step.retry_by), default=None
            )
    deadline = order.pending_deadline
    return min(found, deadline.due_by) if found and deadline else found


def _tried_next(order: OrderAggregate) -> Sequence[Step]:
    """Return the steps that wait for an attempt, whether or not they are ready.

    There are none if the order is stopping (SCH-12).
    """
    if order.is_undo:
        return order.in_state(UndoPending)
    return () if order.is_stopping else order.in_state(Startable)


def _locked_by(order: OrderAggregate) -> str | None:
    """Return the scheduler that handles the order, or None while no agent has a request (ANS-1)."""
    instance = order.state.instance if isinstance(order.state, Processing) else None
    return instance if order.has_any(AtWork) else None


def _ready_since(before: OrderAggregate | None, after: OrderAggregate, now: datetime) -> datetime:
    """Return the time from which the order's age in the queue counts.

    The time is reset after progress or an operator's action. An attempt without a result is no
    progress, so the order keeps its place.
    """
    if before is None or _goes_on(before, after) or _settled(before) != _settled(after):
        return now
    # A time in the future came from a host whose clock is ahead. It counts as now.
    return min(before.derived.ready_since, now)


def _goes_on(before: OrderAggregate, after: OrderAggregate) -> bool:
    """Return whether the undo starts, or the order continues after its end or a hold."""
    is_resumed = before.has_ended and not after.has_ended
    is_released = before.hold is not None and after.hold is None
    return is_resumed or is_released or before.direction is not after.direction


def _settled(order: OrderAggregate) -> frozenset[str]:
    return frozenset(step.name for step in order.in_state(SettledStep))
