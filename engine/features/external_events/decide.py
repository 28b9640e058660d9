"""The decision about an external event from a person, or from a service at its callback URL (ANS).

No workflow is needed: the order's own records show whether the event counts. The event and the
expiry of its deadline are two decisions on one ETag, so exactly one of them is committed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from engine.decisions.drafts import Draft, NextVersion, after_answer, lateness
from engine.decisions.errors import ActionRefusedError
from engine.decisions.step_kinds import strategy_of
from engine.decisions.transitions import Transition, transition_of
from engine.decisions.undo import after_failure
from engine.domain import verbs
from engine.domain.causes import Cause, Code
from engine.domain.digests import digest_of
from engine.domain.errors import RefusedError
from engine.domain.events import (
    EarlyRefusalRecorded,
    ExternalEventRecorded,
    HistoryEvent,
    StepFailed,
)
from engine.domain.orders import PROCESS_STATE, OrderAggregate, Processing
from engine.domain.states import (
    Completed,
    ConditionPending,
    Failed,
    NothingToUndo,
    RequestCancelled,
    Running,
    Skipped,
    UnderWay,
    UndoFailed,
)
from engine.domain.steps import Step
from engine.features.external_events import steps

ACTOR = "outside"
"""The actor of an external event in the history. No more is known about the external party."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExternalEvent:
    """The event that an external party sends to a step: its result, or a refusal."""

    step: str
    result: Mapping[str, Any] | None = None
    """The result as it is kept, or as it is recorded if it has the same values. None for a
    refusal."""
    refusal: str | None = None
    """The reason for a refusal. The rule of the step decides what follows."""
    for_good: bool = False
    """Whether the service that refused would refuse its key again (AGT-3)."""


class EventNotAcceptedError(RefusedError):
    """The event changes nothing."""


def record(order: OrderAggregate, event: ExternalEvent, now: datetime) -> NextVersion | None:
    """Record an event, or return None if the same event was recorded before (ANS-3).

    An event may come before its turn, and after its deadline until the supervisor has recorded the
    expiry (ANS-2). The same is true of a service that answers at its callback URL (ANS-6). Like an
    agent's reply, its answer counts even while the order is being undone (ANS-4). If the condition
    of the step is pending, a refusal counts once the condition is evaluated (ANS-3).

    Raises `EventNotAcceptedError` if the event does not count.
    """
    step = order.step(event.step)
    if step is None:
        raise EventNotAcceptedError(Cause(Code.EVENT_FOR_UNKNOWN_STEP, {"step": event.step}))
    if _is_known(step, event):
        return None
    if cause := why_closed(order, step):
        raise EventNotAcceptedError(cause)
    after, history_event = _recorded(step, event)
    draft = after_answer(order, step, after, history_event, now)
    if isinstance(after.state, Failed) and not order.is_undo:
        return after_failure(draft)
    return _go_on(draft)


def recorded(
    order: OrderAggregate, event: ExternalEvent, actor: str, now: datetime
) -> Transition | None:
    """Return the transition by which this actor's event is recorded.

    Returns None if the same event was recorded before. Raises `RefusedError` with the cause if the
    event changes nothing.
    """
    decided = record(order, event, now)
    return transition_of(decided, actor) if decided else None


def why_closed(order: OrderAggregate, step: Step) -> Cause | None:
    """Return the reason why no event to the step counts, or None if one does."""
    known = {"step": step.name}
    match step.state:
        case Completed():
            return Cause(Code.EVENT_AFTER_COMPLETION, known)
        case (
            Failed(cause)
            | UndoFailed(cause)
            | NothingToUndo(cause)
            | ConditionPending(Cause() as cause)
        ):
            return Cause(Code.EVENT_AFTER_FAILURE, {**known, "why": cause.as_json()})
        case Skipped():
            return Cause(Code.EVENT_AFTER_SKIP, known)
    return _why_order_takes_none(order, step)


def for_outsiders(step: Step, closed: Cause) -> Cause:
    """Return the cause that the holder of the callback URL may read."""
    if closed.code is Code.EVENT_AFTER_COMPLETION:
        return closed
    # The cause itself may repeat texts of operators, or of a service about the customer.
    return Cause(Code.EVENT_CLOSED, {"step": step.name})


def _why_order_takes_none(order: OrderAggregate, step: Step) -> Cause | None:
    """Return the reason why the state of the order excludes an event to the step, or None."""
    order_cause = order.cause and order.cause.as_json()
    if order.is_undo and not isinstance(step.state, Running):  # a service may still answer
        return Cause(Code.EVENT_DURING_UNDO, {"why": order_cause})
    if order.has_ended:
        state = str(PROCESS_STATE[type(order.state)])
        return Cause(Code.EVENT_AFTER_END, {"state": state, "why": order_cause})
    if order.is_late and isinstance(step.state, RequestCancelled):  # at the deadline (SCH-17)
        known = {"step": step.name, "why": lateness(order).as_json()}
        return Cause(Code.EVENT_AFTER_FAILURE, known)
    return None


def external_step(order: OrderAggregate, name: str) -> Step:
    """Return the step of this name that an external event completes.

    Raises `ActionRefusedError` if there is none.
    """
    step = order.step(name)
    if step is None or not step.is_external:
        external = [step.name for step in order.steps if step.is_external]
        raise ActionRefusedError(Cause(Code.NOT_EXTERNAL, {"step": name, "steps": external}))
    return step


def _is_known(step: Step, event: ExternalEvent) -> bool:
    """Return whether the same event was already recorded, in whatever state the step is now.

    An agent's reply may have recorded it too. If the recorded result is erased, this result is
    compared after the same erasure.
    """
    if event.result is not None:
        erased = steps.erased_result(step, event.result)
        known = {digest_of(event.result), digest_of(erased)}
        return step.result is not None and digest_of(step.result) in known
    return step.cause is not None and step.cause.digest == _refusal(event).digest


def _refusal(event: ExternalEvent) -> Cause:
    return Cause(Code.REFUSED, {"detail": event.refusal})


def _recorded(step: Step, event: ExternalEvent) -> tuple[Step, HistoryEvent]:
    if event.refusal is None:
        completed = strategy_of(step).complete(step, event.result or {})
        recorded = ExternalEventRecorded(step=step.name, attempt=step.counts.attempts)
        return completed, recorded
    cause = _refusal(event)
    if isinstance(step.state, ConditionPending):
        early = steps.refuse_early(step, cause)
        return early, EarlyRefusalRecorded(step=step.name, cause=cause)
    # A call that asks again for accepted work may come after its refusal: unless the service would
    # refuse its key again, it may do the work then.
    asks_again = isinstance(step.state, UnderWay) and step.answer_by is not None
    refused = verbs.refuse(step, cause, unanswered=asks_again, for_good=event.for_good)
    return refused, StepFailed(step=step.name, attempt=step.counts.attempts, cause=cause)


def _go_on(draft: Draft) -> NextVersion:
    """Let a scheduler continue, unless the order has to wait for its other steps."""
    order = draft.order
    is_handled = isinstance(order.state, Processing)
    if is_handled and order.has_any(UnderWay) and not order.ready:
        return draft.commit()
    return draft.but(order.requeue()).commit()
