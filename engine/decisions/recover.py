"""The supervisor's decision after a complete-by time or the deadline has passed (SUP-3).

The decision needs no workflow and no business: each step has a copy of its rules, and the order has
its deadline. If the rule of a failed step or of a late order requires the undo, the supervisor
leaves the order to a scheduler, which undoes it (SUP-6).
"""

# The pattern in an hour, 20 of 23: the recovery

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from engine.decisions import deadlines
from engine.decisions.drafts import Draft, NextVersion, end_failed, is_to_be_undone
from engine.decisions.step_kinds import AttemptReport, Expiry, strategy_of
from engine.domain import verbs
from engine.domain.events import Recovered
from engine.domain.messages import request_id_of
from engine.domain.orders import OrderAggregate, Processing
from engine.domain.states import AtWork, UnderWay
from engine.domain.steps import Step, StepIn

NO_REPORT = AttemptReport()


def recover(
    order: OrderAggregate,
    now: datetime,
    reports: Mapping[str, AttemptReport],
    clock_tolerance: timedelta,
    max_unbegun: int,
) -> NextVersion | None:
    """End the expired attempts: their steps are tried again, or given up.

    Returns None if nothing is due. `reports` has the known facts of each attempt by the id of its
    request.

    A step fails once its count *reaches* the threshold: with a threshold of 3 it is tried three
    times. A step is given up after `max_unbegun` consecutive requests that no agent began (SUP-9).
    If the deadline of the order has passed too, it is handled first (SCH-17).
    """
    draft = deadlines.checked(Draft(before=order, order=order, now=now), clock_tolerance)
    if expired := draft.order.overdue(now, clock_tolerance):
        return _go_on(_expired(draft, expired, reports, max_unbegun))
    if draft.order is order:
        return None
    return _go_on(draft) if draft.order.is_late else draft.commit()


def _expired(
    draft: Draft,
    expired: Sequence[StepIn[UnderWay]],
    reports: Mapping[str, AttemptReport],
    max_unbegun: int,
) -> Draft:
    """Return the draft after the attempts at these steps have ended.

    They count as at most one recovery of the order.
    """
    order = draft.order
    verdicts = [
        strategy_of(step).expire(step, _expiry(order, step, draft.now, reports, max_unbegun))
        for step in expired
    ]
    events = (event for verdict in verdicts for event in verdict.events)
    counted = any(verdict.is_counted for verdict in verdicts)
    after = order.with_steps(*(verdict.step for verdict in verdicts))
    after = replace(after, failures=order.failures + counted)
    if after.is_stopping:  # no step is tried again (SCH-12)
        after = after.with_steps(*(verbs.without_retry_by(verdict.step) for verdict in verdicts))
    return draft.but(after, *events)


def _go_on(draft: Draft) -> NextVersion:
    """Let any scheduler claim the order, or end it if none of its steps can be done or undone."""
    order, was_handled = draft.order, isinstance(draft.before.state, Processing)
    if order.is_stopping and (was_handled or order.is_late):
        if order.has_any(AtWork):
            return draft.commit()
        if not order.is_finished and not is_to_be_undone(order):
            return end_failed(draft)
    return draft.but(order.requeue(), *([Recovered()] if was_handled else [])).commit()


def _expiry(
    order: OrderAggregate,
    step: Step,
    now: datetime,
    reports: Mapping[str, AttemptReport],
    max_unbegun: int,
) -> Expiry:
    request = request_id_of(order.order_id, step)
    return Expiry(
        now=now,
        request=request,
        report=reports.get(request, NO_REPORT),
        is_undo=order.is_undo,
        max_unbegun=max_unbegun,
    )
