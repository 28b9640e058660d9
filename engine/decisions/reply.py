"""The scheduler's decision about an agent's reply (SCH-5, SCH-6, SCH-8)."""

# The pattern in an hour, 16 of 23: the reply

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from engine.decisions.drafts import NextVersion, after_answer
from engine.decisions.proceed import Capacity, Proceed, Scheduler
from engine.decisions.requests import personal_in, step_removed, without
from engine.decisions.results import length_of
from engine.declarations.workflow import StepDefinition
from engine.domain import verbs
from engine.domain.attempts import FailureOrigin
from engine.domain.causes import Cause, Code
from engine.domain.digests import digest_of
from engine.domain.errors import NewerWorkflowError
from engine.domain.events import (
    AttemptDeferred,
    HistoryEvent,
    NotAttempted,
    ReplyRefused,
    StepCompleted,
    StepFailed,
    StepUndone,
)
from engine.domain.messages import (
    AgentReply,
    CompletedReply,
    DeferredReply,
    FailedReply,
    NotAttemptedReply,
)
from engine.domain.orders import OrderAggregate, Pending
from engine.domain.states import PATTERN_STATE, Running, Undoing
from engine.domain.steps import Step
from engine.domain.submitted_order import MAX_KEPT


@dataclass(frozen=True, slots=True)
class RefusedReply:
    """A reply that changes nothing. The history records it once (SCH-6)."""

    note_id: str
    event: ReplyRefused


@dataclass(frozen=True, slots=True)
class Delivery:
    """A reply as it was delivered."""

    reply: AgentReply
    agent: str
    """The agent whose queue delivered the reply."""


def receive(
    order: OrderAggregate,
    delivery: Delivery,
    now: datetime,
    capacity: Capacity,
    scheduler: Scheduler,
) -> NextVersion | RefusedReply:
    """Act on a valid reply, and record any other reply as refused.

    Raises `NewerWorkflowError` for a valid reply on which only a newer version of the app can act
    (FLT-12).
    """
    reply = delivery.reply
    step = order.step(reply.step)
    refusal = _why_invalid(step, delivery, now, scheduler.clock_tolerance)
    if refusal := refusal or _why_useless(order, reply, scheduler):
        return _refused(delivery, refusal)
    workflow = scheduler.workflows.find(order.workflow, order.workflow_version)
    definition = workflow.definition(reply.step) if workflow else None
    if step is None or workflow is None or definition is None:
        raise NewerWorkflowError
    cleaned = _without_personal_data(reply, order, scheduler)
    answered, event = _answered(step, cleaned, definition, scheduler, now)
    draft = after_answer(order, step, answered, event, now)
    if isinstance(order.state, Pending):  # another step timed out: the next claim goes on
        return draft.commit()
    proceed = Proceed(scheduler=scheduler, workflow=workflow, capacity=capacity)
    return proceed(draft) or draft.commit()


def _without_personal_data(
    reply: AgentReply, order: OrderAggregate, scheduler: Scheduler
) -> AgentReply:
    """Return the reply without personal data of the order in its detail (ANS-5)."""
    match reply:
        case FailedReply(detail=str(detail)) | NotAttemptedReply(detail=str(detail)) if detail:
            personal = personal_in(order, scheduler.payload)
            return reply.model_copy(update={"detail": without(personal(), detail)})
    return reply


def _answered(
    step: Step,
    reply: AgentReply,
    definition: StepDefinition,
    scheduler: Scheduler,
    now: datetime,
) -> tuple[Step, HistoryEvent]:
    match reply:
        case CompletedReply():
            return _completed(step, _kept(definition, reply.result))
        case FailedReply():
            return _failed(step, reply, scheduler)
        case NotAttemptedReply():
            return _not_attempted(step, reply, now)
        case DeferredReply():
            return _deferred(step, reply, scheduler, now)


def _completed(step: Step, result: Mapping[str, Any]) -> tuple[Step, HistoryEvent]:
    if isinstance(step.state, Running) and length_of(result) > MAX_KEPT:
        return _too_long(step)
    kind = StepUndone if isinstance(step.state, Undoing) else StepCompleted
    return verbs.complete(step, result), kind(step=step.name, attempt=step.counts.attempts)


def _too_long(step: Step) -> tuple[Step, HistoryEvent]:
    """Fail a step whose result is too long to be kept. Its service did the work."""
    cause = Cause(Code.RESULT_TOO_LONG, {"limit": MAX_KEPT})
    return verbs.refuse(step, cause, unanswered=True), _failure(step, cause)


def _failed(step: Step, reply: FailedReply, scheduler: Scheduler) -> tuple[Step, HistoryEvent]:
    """Fail the step. If its service remembers refusals, the key stays refused (AGT-3)."""
    facts = {"detail": reply.detail}
    if reply.origin is not FailureOrigin.SERVICE:
        cause = Cause(Code.CALL_REJECTED, facts)
        failed = verbs.fail(step, cause, unanswered=reply.in_doubt, operator_decides=True)
        return failed, _failure(step, cause)
    cause = Cause(Code.REFUSED, {**facts, **reply.identifiers})
    declared = scheduler.agents.get(step.agent)
    remembers = declared is not None and declared.remembers_refusals
    for_good = remembers and isinstance(step.state, Running)
    refused = verbs.refuse(step, cause, unanswered=reply.in_doubt, for_good=for_good)
    return refused, _failure(step, cause)


def _failure(step: Step, cause: Cause) -> HistoryEvent:
    return StepFailed(step=step.name, attempt=step.counts.attempts, cause=cause)


def _deferred(
    step: Step, reply: DeferredReply, scheduler: Scheduler, now: datetime
) -> tuple[Step, HistoryEvent]:
    """Let the agent call the service again after the pause that it requests (AGT-11).

    No failure is counted.
    """
    declared = scheduler.agents.get(step.agent)
    within = (declared and declared.answer_within) or timedelta()
    pause = timedelta(seconds=reply.retry_after)
    deferred = verbs.defer(
        step, now, retry_after=pause, answer_within=within, unanswered=reply.in_doubt
    )
    attempt, until = step.counts.attempts, deferred.not_before or now
    event = AttemptDeferred(step=step.name, attempt=attempt, agent=step.agent, until=until)
    return deferred, event


def _not_attempted(
    step: Step, reply: NotAttemptedReply, now: datetime
) -> tuple[Step, HistoryEvent]:
    """Let the step be requested again after the pause, without a failure (AGT-8, SCH-16)."""
    # An open circuit belongs to one instance. Its health row has the time for which it makes no
    # calls, so other instances may be called earlier.
    pause = timedelta(seconds=0 if reply.reason.is_circuit_open else reply.retry_after)
    waiting = verbs.not_attempted(step, now, retry_after=pause, unanswered=reply.in_doubt)
    cause = Cause(Code.NOT_ATTEMPTED, {"detail": reply.detail})
    return waiting, NotAttempted(step=step.name, attempt=step.counts.attempts, cause=cause)


def _kept(definition: StepDefinition, result: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return the fields of the service's answer that the workflow keeps (UND-3)."""
    wanted = definition.result_fields
    return {name: value for name, value in (result or {}).items() if name in wanted}


# Replies that change nothing


def _why_invalid(
    step: Step | None, delivery: Delivery, now: datetime, tolerance: timedelta
) -> Cause | None:
    """Return the reason why a reply is invalid, or None if it is valid (SCH-6).

    A valid reply belongs to the current attempt of a running step, comes from the agent of the
    request, and is in time.
    """
    reply, agent = delivery.reply, delivery.agent
    facts = {"step": reply.step, "attempt": reply.attempt}
    if step is None:
        return Cause(Code.REPLY_FOR_UNKNOWN_STEP, {"step": reply.step})
    if reply.attempt != step.counts.attempts:
        return Cause(Code.REPLY_OUTDATED, {**facts, "current": step.counts.attempts})
    if agent != step.agent:
        mismatch = {**facts, "agent": agent, "expected": step.agent}
        return Cause(Code.REPLY_FROM_OTHER_AGENT, mismatch)
    if not isinstance(step.state, Undoing if reply.action == "undo" else Running):
        word = PATTERN_STATE[type(step.state)]
        return Cause(Code.REPLY_NOT_AWAITED, {**facts, "state": str(word)})
    if step.is_expired(now, tolerance):
        return Cause(Code.REPLY_LATE, facts)
    return None


def _why_useless(order: OrderAggregate, reply: AgentReply, scheduler: Scheduler) -> Cause | None:
    """Return the reason why no version of the app can use a valid reply, or None if one can."""
    name, version = order.workflow, order.workflow_version
    workflow = scheduler.workflows.find(name, version)
    if workflow is None:
        is_retired = scheduler.workflows.was_retired(name, version)
        return Cause(Code.REPLY_AFTER_RETIREMENT) if is_retired else None
    return None if workflow.definition(reply.step) else step_removed(workflow, reply.step)


def _refused(delivery: Delivery, cause: Cause) -> RefusedReply:
    reply = delivery.reply
    content = reply.model_dump(include={"outcome", "detail", "result"})
    digest = digest_of([delivery.agent, reply.request_id, content])
    event = ReplyRefused(step=reply.step, attempt=reply.attempt, cause=cause)
    return RefusedReply(f"reply-{reply.attempt}-{digest}", event)
