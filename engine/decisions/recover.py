"""The supervisor's decision after a complete-by time has passed without a valid reply (SUP-3).

It knows no workflow and no business: each step has a copy of its rules. Where the rule of a failed
step asks for the undo, the supervisor leaves the order to a scheduler, which undoes it (SUP-6).
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from engine.decisions.drafts import Draft, NextVersion, asks_for_undo, end_failed
from engine.decisions.step_kinds import AttemptReport, Expiry, strategy_of
from engine.domain import verbs
from engine.domain.events import Recovered
from engine.domain.messages import request_id
from engine.domain.orders import OrderAggregate, Processing
from engine.domain.states import AtWork, Failed, Undoing
from engine.domain.steps import Step

NO_REPORT = AttemptReport()


def recover(
    order: OrderAggregate,
    now: datetime,
    reports: Mapping[str, AttemptReport],
    clock_tolerance: timedelta,
    max_unbegun: int,
) -> NextVersion | None:
    """Let the expired steps be tried again, or give them up; None if no step has expired.

    `reports` has what is known of an attempt under the id of its request. A step fails once its
    count *reaches* the threshold: with a threshold of 3 it is tried three times. It is given up
    after `max_unbegun` requests in a row that no agent began (SUP-9).
    """
    expired = order.overdue(now, clock_tolerance)
    if not expired:
        return None
    verdicts = [
        strategy_of(step).expire(step, _expiry(order, step, now, reports, max_unbegun))
        for step in expired
    ]
    events = tuple(event for verdict in verdicts for event in verdict.events)
    counted = any(verdict.is_counted for verdict in verdicts)
    after = order.with_steps(*(verdict.step for verdict in verdicts))
    after = replace(after, failures=order.failures + counted)
    draft = Draft(before=order, order=after, now=now, events=events)
    was_handled = isinstance(order.state, Processing)
    if not order.is_undo and after.has_any(Failed):  # no step is tried again (SCH-12)
        waiting = (verbs.without_retry_by(verdict.step) for verdict in verdicts)
        draft = replace(draft, order=after.with_steps(*waiting))
        if was_handled and after.has_any(AtWork):
            return draft.commit()
        if was_handled and not asks_for_undo(after):
            return end_failed(draft)
    return draft.but(draft.order.requeue(), *([Recovered()] if was_handled else [])).commit()


def request_of(order: OrderAggregate, step: Step) -> str:
    """Return the id of the request of the running attempt."""
    action = "undo" if isinstance(step.state, Undoing) else "do"
    return request_id(order.order_id, step.name, step.counts.attempts, action)


def _expiry(
    order: OrderAggregate,
    step: Step,
    now: datetime,
    reports: Mapping[str, AttemptReport],
    max_unbegun: int,
) -> Expiry:
    request = request_of(order, step)
    return Expiry(
        now=now,
        request=request,
        report=reports.get(request, NO_REPORT),
        is_undo=order.is_undo,
        max_unbegun=max_unbegun,
    )
