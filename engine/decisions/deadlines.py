"""The supervisor's checks of the deadline of an order: first a warning, then the mark (SCH-17).

A scheduler decides whether a late order is undone (SUP-6).
"""

from dataclasses import replace
from datetime import datetime, timedelta

from engine.decisions.drafts import Draft
from engine.domain.deadlines import Deadline
from engine.domain.events import DeadlinePassed, DueSoon
from engine.domain.orders import OrderAggregate
from engine.features.external_events.steps import cancel_requests


def checked(draft: Draft, clock_tolerance: timedelta) -> Draft:
    """Return the draft after the check that is due, or the same draft if none is due.

    If the deadline has passed already, there is no warning.
    """
    order, deadline = draft.order, draft.order.pending_deadline
    now = draft.now - clock_tolerance
    if deadline is None or not _is_over(deadline.next_check, now):
        return draft
    if _is_over(deadline.due_by, now):
        return _passed(draft, deadline)
    return draft.but(replace(order, deadline=deadline.warned()), DueSoon(due_by=deadline.due_by))


def _is_over(time: datetime | None, now: datetime) -> bool:
    return time is not None and now > time


def _passed(draft: Draft, deadline: Deadline) -> Draft:
    """Let the order start no more steps, unless it continues without a deadline.

    A late order stops waiting for external events (SCH-12).
    """
    late: OrderAggregate = replace(draft.order, deadline=deadline.passed())
    event = DeadlinePassed(due_by=deadline.due_by, when_late=deadline.when_late)
    if not late.is_late:
        return draft.but(late, event)
    without_requests, cancelled = cancel_requests(late)
    return draft.but(without_requests, event, *cancelled)
