"""The supervisor's decision after a complete-by time has passed without a valid reply (SUP-3).

It knows no workflow and no business: each step has a copy of its rules. Where the rule of a failed
step asks for the undo, the supervisor leaves the order to a scheduler, which undoes it (SUP-6).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from zlib import crc32

from engine.decisions.drafts import (
    Draft,
    NextVersion,
    asks_for_undo,
    end_failed,
    failure_of,
)
from engine.domain import verbs
from engine.domain.causes import Cause, Code
from engine.domain.events import AttemptExpired, CooldownStarted, HistoryEvent, Recovered
from engine.domain.messages import request_id
from engine.domain.orders import OrderAggregate, Processing
from engine.domain.states import (
    AtWork,
    AwaitingExternalEvent,
    CoolingDown,
    Failed,
    Running,
    Skipped,
    UndoFailed,
    Undoing,
)
from engine.domain.steps import Step
from engine.features.external_events.steps import expire_event


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptReport:
    """What agents have reported of an attempt."""

    has_begun: bool = False
    """Whether an agent began it; any other attempt counts as no failure."""
    fault: str | None = None
    """The last fault of the attempt; None if none was reported, empty if its text is unknown."""
    by_gateway: bool = False
    """Whether a gateway turned the last call away before it reached the service."""


NO_REPORT = AttemptReport()


def recover(
    order: OrderAggregate,
    now: datetime,
    reports: Mapping[str, AttemptReport],
    clock_tolerance: timedelta,
) -> NextVersion | None:
    """Let the expired steps be tried again, or give them up; None if no step has expired.

    `reports` has what is known of an attempt under the id of its request. A step fails once its
    count *reaches* the threshold: with a threshold of 3 it is tried three times.
    """
    expired = order.overdue(now, clock_tolerance)
    if not expired:
        return None
    verdicts = [_verdict(order, step, now, reports) for step in expired]
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


@dataclass(frozen=True, slots=True)
class _Verdict:
    """An expired step as it is now, and what happened to it."""

    step: Step
    events: tuple[HistoryEvent, ...]
    is_counted: bool = False


def _verdict(
    order: OrderAggregate, step: Step, now: datetime, reports: Mapping[str, AttemptReport]
) -> _Verdict:
    if isinstance(step.state, AwaitingExternalEvent):
        return _event_missed(step, now)
    request = request_of(order, step)
    report = reports.get(request, NO_REPORT)
    expired = _expired(step, report)
    if order.is_undo and isinstance(step.state, Running):
        turned = verbs.expire_in_undo(step, now)
        return _Verdict(turned, (expired,), report.has_begun)
    failures = step.counts.failures + report.has_begun
    is_repeated = failures > 1 and report.fault is None
    delay = _spread(request, step.rules.timeout) if is_repeated else None
    if not report.has_begun:
        cause = Cause(Code.NOT_BEGUN, {"agent": step.agent})
        waiting = verbs.expire_uncounted(step, now, cause, delay=delay)
        return _Verdict(waiting, (expired,))
    cause = Cause(Code.TIMED_OUT, {"fault": report.fault or ""})
    after = verbs.expire(step, now, cause, delay=delay, operator_decides=report.by_gateway)
    counted = replace(step, counts=replace(step.counts, failures=failures))
    whole = verbs.threshold_reached(counted, cause)
    return _Verdict(after, (expired, *_consequence(after, whole)), is_counted=True)


def _event_missed(step: Step, now: datetime) -> _Verdict:
    """Return the verdict on a step whose external event did not come; it always counts (ANS-2)."""
    after = expire_event(step, now)
    expired = replace(_expired(step, NO_REPORT), failure=step.counts.failures + 1)
    consequence = _consequence(after, after.cause)
    return _Verdict(after, (expired, *consequence), is_counted=True)


def _expired(step: Step, report: AttemptReport) -> AttemptExpired:
    return AttemptExpired(
        step=step.name,
        attempt=step.counts.attempts,
        agent=step.agent,
        threshold=step.rules.threshold,
        failure=step.counts.failures + 1 if report.has_begun else None,
        fault=report.fault or "",
    )


def _consequence(after: Step, cause: Cause | None) -> tuple[HistoryEvent, ...]:
    """Return what else happened to an expired step: it cools down, or has failed."""
    if isinstance(after.wait, CoolingDown):
        number, most, until = after.counts.cooldowns, after.rules.max_cooldowns, after.wait.until
        return (CooldownStarted(step=after.name, number=number, most=most, until=until),)
    is_given_up = isinstance(after.state, Failed | Skipped | UndoFailed)
    return failure_of(after, cause) if is_given_up and cause else ()


def _spread(request: str, within: timedelta) -> timedelta:
    """Return the delay of a request that has timed out repeatedly without a reported fault.

    It, or another request, may end the agent's process each time. Requests that come apart do not
    fail together again.
    """
    return within * (crc32(request.encode()) / 2**32)
