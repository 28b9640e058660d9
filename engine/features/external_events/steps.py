"""Steps that an external event completes, and services that answer at a callback URL.

A step of kind `EXTERNAL` has no agent. While it waits for its event, it is in
`AwaitingExternalEvent`. After the order has ended or is undone, it is in `RequestCancelled`
(ANS-1).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from engine.domain.causes import Cause, Code
from engine.domain.effects import Answered, Done, WithResult
from engine.domain.events import ExternalRequestCancelled
from engine.domain.orders import OrderAggregate
from engine.domain.personal_data import texts_in
from engine.domain.states import (
    AwaitingExternalEvent,
    Completed,
    ConditionPending,
    RequestCancelled,
    UnderWay,
    Waiting,
)
from engine.domain.steps import Step, StepIn
from engine.domain.submitted_order import ERASED
from engine.domain.table import TableEvent
from engine.domain.verbs import after_last_attempt, cooled_down, key_of, under_way, verb


@verb(TableEvent.START)
def await_event(
    step: Step, complete_by: datetime, *, callback_token: str | None = None
) -> StepIn[UnderWay]:
    """Record that the event is awaited until its deadline (ANS-1). No request is sent."""
    return under_way(step, AwaitingExternalEvent(complete_by), callback_token)


@verb(TableEvent.EXTERNAL_EVENT)
def complete_by_event(step: Step, result: Mapping[str, Any]) -> Step:
    """Complete an external step with the event's result, which may come before its turn (ANS-2)."""
    return replace(step, state=Completed(), effect=Answered(result=result))


@verb(TableEvent.EXTERNAL_EVENT)
def complete_by_callback(step: Step, result: Mapping[str, Any]) -> Step:
    """Complete a step with the result that its service sends to the callback URL (ANS-6)."""
    counts = step.counts.without_uncounted()
    return replace(
        step, counts=counts, state=Completed(), effect=Done(key=key_of(step), result=result)
    )


@verb(TableEvent.EXTERNAL_EVENT)
def refuse_early(step: Step, cause: Cause) -> Step:
    """Keep a refusal until the condition is evaluated: the step may not be needed (ANS-3)."""
    return replace(step, state=ConditionPending(cause.shortened()))


@verb(TableEvent.EXPIRE)
def expire_event(step: Step, now: datetime) -> Step:
    """Count a failure, because the event did not come in time (ANS-2).

    The effect is not in doubt. The event is requested again, as a reminder, until the threshold is
    reached.
    """
    counts = replace(step.counts, failures=step.counts.failures + 1)
    missed, cause = replace(step, counts=counts), Cause(Code.NO_EXTERNAL_EVENT)
    if counts.failures < step.rules.threshold:
        return replace(missed, state=Waiting(cause, now + step.rules.timeout))
    if counts.cooldowns < step.rules.max_cooldowns:
        return cooled_down(missed, now, cause)
    facts = {"step": step.name, "failures": counts.failures}
    return after_last_attempt(
        missed, Cause(Code.EXTERNAL_EVENT_MISSING, facts), operator_decides=False
    )


@verb(TableEvent.CANCEL_REQUEST)
def cancel_request(step: Step) -> Step:
    """Stop waiting for the event, because the order has ended or is undone (SCH-12)."""
    return replace(step, state=RequestCancelled())


@verb(TableEvent.MOVE_DEADLINE)
def move_deadline(step: Step, complete_by: datetime) -> Step:
    """Wait for the event until this time instead (ANS-7)."""
    return replace(step, state=AwaitingExternalEvent(complete_by))


def move_deadline_by(
    step: StepIn[AwaitingExternalEvent], held_for: timedelta, at_most: datetime | None = None
) -> Step:
    """Move the deadline of the event by the duration of the hold (OPR-7).

    The order's own deadline `at_most` limits the new time.
    """
    # A hold that began in the future by this clock counts as none.
    moved = step.state.complete_by + max(held_for, timedelta())
    return move_deadline(step, min(moved, at_most or moved))


def is_awaited_again(step: Step) -> bool:
    """Return whether a resubmit requests the event again, after an earlier request."""
    was_requested = step.is_external and step.counts.attempts > 0
    return was_requested and (isinstance(step.state, RequestCancelled) or step.wait is not None)


def with_callback_token(step: Step, token: str) -> Step:
    """Return the step with this secret in its callback URL, which ends a former URL (ANS-6)."""
    return replace(step, callback_token=token)


def without_personal_data(step: Step) -> Step:
    """Return the step without the personal data in its result (ANS-5)."""
    effect = step.effect
    if not step.rules.personal or not isinstance(effect, WithResult):
        return step
    if effect.result is None:
        return step
    return replace(step, effect=replace(effect, result=erased_result(step, effect.result)))


def erased_result(step: Step, result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the result without the personal data of the step (ANS-5)."""
    personal = step.rules.personal
    return {name: _erased(value) if name in personal else value for name, value in result.items()}


def personal_texts(step: Step) -> Iterator[str]:
    """Yield the personal texts and numbers in the result of the step (ANS-5)."""
    result = step.result or {}
    return texts_in([result.get(name) for name in step.rules.personal])


def _erased(value: Any) -> Any:
    """Return the replacement of a personal value.

    A list that is not empty becomes a list with one part.
    """
    if value is None:
        return value
    if isinstance(value, list):
        return [ERASED] if value else []
    return ERASED


def cancel_requests(
    order: OrderAggregate,
) -> tuple[OrderAggregate, tuple[ExternalRequestCancelled, ...]]:
    """Return the order with no awaited external event, and the events of this change (SCH-12)."""
    awaited = order.in_state(AwaitingExternalEvent)
    events = tuple(
        ExternalRequestCancelled(step=step.name, attempt=step.counts.attempts) for step in awaited
    )
    return order.with_steps(*map(cancel_request, awaited)), events


def move_deadlines(order: OrderAggregate, held_for: timedelta) -> OrderAggregate:
    """Return the order with each event's deadline moved by the duration of the hold (OPR-7)."""
    awaited = order.in_state(AwaitingExternalEvent)
    at_most = order.attempts_end_by
    return order.with_steps(*(move_deadline_by(step, held_for, at_most) for step in awaited))
