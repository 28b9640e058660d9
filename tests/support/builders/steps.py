"""Steps in each of their states, with what is known of their effect, their counts and their rules.

Each function takes a step, or the name of a new one, and returns it as it is in that state. What
belongs to the state alone (times, reason) is set anew. Rules, counts and effect are kept, except
where the state says more about them: a completed step has a result, and nothing of it is in doubt.

A reason is a cause, or the text by which the service refused.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack

from bench.workflows import PAYMENT_ONLY
from engine.domain.causes import Cause, Code
from engine.domain.effects import (
    Answered,
    Done,
    InDoubt,
    NotDone,
    NothingSent,
    RequestKey,
    Reverted,
    Sent,
    UndoInDoubt,
    WithResult,
    doubted,
    next_generation,
)
from engine.domain.states import (
    AwaitingExternalEvent,
    BackingOff,
    Completed,
    ConditionPending,
    CoolingDown,
    Deferred,
    Delayed,
    Failed,
    LateEffectsPossible,
    NothingToUndo,
    RequestCancelled,
    Running,
    Scheduled,
    Skipped,
    SkipReason,
    State,
    UndoFailed,
    Undoing,
    Undone,
    UndoPending,
    Wait,
    Waiting,
)
from engine.domain.steps import Step, StepKind
from engine.domain.submitted_order import EXTERNAL_PARTY, OnFailure

from .values import DEFAULTS, NOW, PROVIDERS

(PAYMENT,) = PAYMENT_ONLY.initial_steps(DEFAULTS)
"""The step that is made unless a test gives another one: an agent does it, and it can be undone."""

TIMED_OUT = Cause(Code.TIMED_OUT, {"fault": ""})
"""Why an attempt came to nothing of which no fault was reported."""


class Rules(TypedDict, total=False):
    """The rules of a step, which an order copies from the step's definition."""

    title: str
    kind: StepKind
    capability: str
    timeout: timedelta
    threshold: int
    on_failure: OnFailure
    after: tuple[str, ...]
    uses: tuple[str, ...]
    undoable: bool
    pivot: bool
    cooldown: timedelta
    max_cooldowns: int
    late_effect_window: timedelta
    personal: tuple[str, ...]
    fingerprint: str


def new(name: str = "payment", **rules: Unpack[Rules]) -> Step:
    """Return a step as the submission records it: nothing was sent."""
    return with_rules(replace(PAYMENT, name=name), **rules)


def like(step: Step, name: str, **rules: Unpack[Rules]) -> Step:
    """Return a step of another name that is like this one."""
    return with_rules(replace(step, name=name), **rules)


def with_rules(step: Step | str, **rules: Unpack[Rules]) -> Step:
    """Return a step with these rules; it keeps its others."""
    step, given = _step(step), dict[str, Any](rules)
    return _fitting(replace(step, rules=replace(step.rules, **given)))


def with_counts(
    step: Step | str,
    *,
    attempts: int | None = None,
    failures: int | None = None,
    cooldowns: int | None = None,
    uncounted: int | None = None,
    overloaded: int | None = None,
) -> Step:
    """Return a step with these counts; it keeps its others.

    `uncounted` is the number of its last attempts that counted as no failure (SCH-16), `overloaded`
    that of its time-outs at an overloaded agent (SUP-3).
    """
    step = _step(step)
    counts: dict[str, Any] = {
        "attempts": attempts,
        "failures": failures,
        "cooldowns": cooldowns,
        "uncounted": uncounted,
        "overloaded": overloaded,
    }
    given = {name: count for name, count in counts.items() if count is not None}
    counted = replace(step, counts=replace(step.counts, **given))
    return _sent(counted) if attempts else counted


# What is known of the effect


def nothing_sent(step: Step | str) -> Step:
    """No request was ever sent, so there is no key, and nothing to undo."""
    step = _step(step)
    return replace(step, counts=replace(step.counts, attempts=0), effect=NothingSent())


def with_key(
    step: Step | str,
    *,
    agent: str | None = None,
    provider: str | None = None,
    generation: int | None = None,
    known_until: datetime | None = None,
    effects_final_at: datetime | None = None,
) -> Step:
    """Return a step of which requests were sent under this key (AGT-3).

    The provider is that of the agent, unless it is given. Until `known_until` the service knows the
    key (AGT-12). After `effects_final_at` no call can take effect any more (UND-2).
    """
    step = _sent(_step(step))
    if not isinstance(step.effect, Sent):
        return step
    key: dict[str, Any] = {
        "agent": agent,
        "provider": provider or (_provider_of(agent) if agent else None),
        "generation": generation,
        "known_until": known_until,
        "effects_final_at": effects_final_at,
    }
    given = {name: value for name, value in key.items() if value is not None}
    return replace(step, effect=replace(step.effect, key=replace(step.effect.key, **given)))


def in_doubt(
    step: Step | str,
    *,
    agent: str | None = None,
    provider: str | None = None,
    known_until: datetime | None = None,
    effects_final_at: datetime | None = None,
) -> Step:
    """Return a step of which an attempt ended without an answer, so it may have been done."""
    keyed = with_key(
        step,
        agent=agent,
        provider=provider,
        known_until=known_until,
        effects_final_at=effects_final_at,
    )
    if not isinstance(keyed.effect, Sent):
        return keyed
    return replace(keyed, effect=doubted(keyed.effect, unanswered=True))


def not_done(step: Step | str, *, refused_for_good: bool = False) -> Step:
    """Return a step each of whose requests was answered, and none had an effect.

    The service may have refused the key for good, so that a resubmit needs a new one.
    """
    step = _sent(_step(step))
    known = NotDone(key=step.key, refused_for_good=refused_for_good) if step.key else NothingSent()
    return replace(step, effect=known)


def with_new_key(step: Step) -> Step:
    """Return a step that was not done, and whose next attempt goes out under a key of its own."""
    return replace(step, effect=NotDone(key=next_generation(step.key))) if step.key else step


def with_texts(step: Step, *, reason: Cause | str, result: Mapping[str, Any]) -> Step:
    """Return a step in whatever state it is, with the longest texts that its row has to hold."""
    match step.effect:
        case NothingSent():
            step = replace(step, effect=Answered(result=result))
        case NotDone(key=key):
            step = replace(step, effect=Done(key=key, result=result))
        case InDoubt(key=key):
            step = replace(step, effect=UndoInDoubt(key=key, result=result))
        case WithResult():
            step = replace(step, effect=replace(step.effect, result=result))
    return replace(step, state=_because(step.state, cause_of(reason)))


def with_link(step: Step | str, token: str | None) -> Step:
    """Return a step that the holder of this token may answer (ANS-6); None: without a link."""
    return replace(_step(step), callback_token=token)


# Before the next attempt


def waiting(
    step: Step | str = "payment",
    *,
    reason: Cause | str | None = None,
    retry_by: datetime | None = None,
) -> Step:
    """Return a step that waits for the steps before it, or for an agent with capacity.

    The reason says why its last attempt failed, and `retry_by` is when the supervisor expects the
    end of the next one (SUP-3); both are None before the first.
    """
    return _as(step, Waiting(cause_of(reason), retry_by))


def condition_pending(step: Step | str = "payment") -> Step:
    """Return a step whose condition and start time are not evaluated yet (SCH-14, SCH-15)."""
    return _as(step, ConditionPending())


def scheduled(step: Step | str = "payment", *, at: datetime) -> Step:
    """Return a step that starts at a time which the workflow chose (SCH-15)."""
    return _as(step, Scheduled(at))


def backing_off(
    step: Step | str = "payment", *, until: datetime, reason: Cause | str | None = None
) -> Step:
    """Return a step that pauses between two attempts (SCH-16).

    The last attempt counted as no failure, unless the step has failures.
    """
    step = _sent(_step(step))
    if step.counts.failures:
        waits = with_counts(step, uncounted=0)
        return _as(waits, Delayed(until, cause_of(reason) or TIMED_OUT))
    waits = with_counts(step, uncounted=step.counts.uncounted or 1)
    return _as(waits, BackingOff(until, cause_of(reason)))


def cooling_down(
    step: Step | str = "payment", *, until: datetime, reason: Cause | str = TIMED_OUT
) -> Step:
    """Return a step that has reached its threshold, and waits for long (SUP-3).

    Its attempts ended without an answer, so it is in doubt, unless somebody outside was asked.
    """
    tired = _sent(_step(step))
    if not tired.is_external:
        tired = in_doubt(tired)
    tired = with_counts(tired, failures=0, cooldowns=tired.counts.cooldowns or 1)
    return _as(tired, CoolingDown(until, _cause(reason), until + tired.rules.timeout))


def accepted_by_service(
    step: Step | str = "payment", *, ask_again_at: datetime, finish_by: datetime
) -> Step:
    """Return a step that its service does later, and about which it is asked again (AGT-11)."""
    sent = _sent(_step(step))
    doubt = replace(doubted(sent.effect, unanswered=False), answer_by=finish_by)
    return _as(replace(sent, effect=doubt), Deferred(ask_again_at))


def withdrawn(step: Step | str = "payment") -> Step:
    """Return a step for whose external answer nobody waits any more (SCH-12)."""
    return _as(_external(step), RequestCancelled())


# An attempt


def running(
    step: Step | str = "payment",
    *,
    complete_by: datetime | None = None,
    started: datetime = NOW,
    attempt: int | None = None,
    agent: str | None = None,
) -> Step:
    """Return a step that an agent does; its time is up after its timeout, unless it is given."""
    step = with_key(step, agent=agent)
    due = complete_by or started + step.rules.timeout
    state = AwaitingExternalEvent(due) if step.is_external else Running(due)
    return with_counts(_as(step, state), attempts=attempt)


def awaiting_external_answer(
    step: Step | str = "payment",
    *,
    complete_by: datetime | None = None,
    started: datetime = NOW,
    attempt: int | None = None,
) -> Step:
    """Return a step that somebody outside was asked to answer (ANS-1)."""
    return running(_external(step), complete_by=complete_by, started=started, attempt=attempt)


# Its result


def completed(
    step: Step | str = "payment",
    *,
    result: Mapping[str, Any] | None = None,
    attempt: int | None = None,
) -> Step:
    """Return a step that was done; nothing of it is in doubt."""
    step, known = _sent(_step(step)), {} if result is None else result
    effect = Done(key=step.key, result=known) if step.key else Answered(result=known)
    return with_counts(_as(replace(step, effect=effect), Completed()), attempts=attempt)


def skipped_by_operator(step: Step | str = "payment") -> Step:
    """Return a step that was done, or undone, by other means, as an operator says (OPR-4)."""
    return _as(step, Skipped(SkipReason.OPERATOR))


def skipped_by_condition(step: Step | str = "payment", *, condition: str = "is_needed") -> Step:
    """Return a step that is not needed, as its condition says (SCH-14)."""
    cause = Cause(Code.CONDITION_NOT_MET, {"condition": condition})
    return _as(step, Skipped(SkipReason.CONDITION, cause))


def skipped_after_failure(
    step: Step | str = "payment", *, reason: Cause | str = "declined"
) -> Step:
    """Return a step that has failed, and without which the order goes on (SCH-13)."""
    optional = with_rules(step, on_failure=OnFailure.CONTINUE)
    return _as(_sent(optional), Skipped(SkipReason.FAILED, cause_of(reason)))


def failed(
    step: Step | str = "payment",
    *,
    reason: Cause | str = "declined",
    for_operator: bool = False,
    attempt: int | None = None,
) -> Step:
    """Return a step that failed, by default because its service refused it.

    `for_operator`: the failure did not come from the service, so an operator decides (SUP-3).
    """
    state = Failed(_cause(reason, for_operator=for_operator), for_operator)
    return with_counts(_as(_sent(_step(step)), state), attempts=attempt)


def failed_before_start(step: Step | str = "payment", *, reason: Cause | str) -> Step:
    """Return a step whose request or condition could not be made, so nothing was ever sent."""
    return _as(nothing_sent(step), Failed(_cause(reason)))


# The way back


def undo_pending(
    step: Step | str = "payment",
    *,
    until: datetime | None = None,
    reason: Cause | str | None = None,
) -> Step:
    """Return a step that has to be undone, and whose undo starts at that time at the earliest.

    Unless the time is given, the undo waits until no earlier call can take effect any more (UND-2).
    The reason says why the last attempt to undo it failed; None before the first.
    """
    step = _to_undo(step)
    final_at = step.key.effects_final_at if step.key else None
    return _as(step, UndoPending(_wait(step, until or final_at, cause_of(reason))))


def undoing(
    step: Step | str = "payment",
    *,
    complete_by: datetime | None = None,
    started: datetime = NOW,
    attempt: int | None = None,
) -> Step:
    """Return a step that an agent undoes."""
    step = _to_undo(step)
    step = _as(step, Undoing(complete_by or started + step.rules.timeout))
    return with_counts(step, attempts=attempt or max(2, step.counts.attempts))


def undo_failed(
    step: Step | str = "payment",
    *,
    reason: Cause | str = "not voidable",
    for_operator: bool = False,
) -> Step:
    """Return a step whose undo was given up, and whose effect may stand (UND-4)."""
    step = _to_undo(step)
    if step.result is None:
        step = in_doubt(step)
    return _as(step, UndoFailed(_cause(reason, for_operator=for_operator), for_operator))


def nothing_to_undo(step: Step | str = "payment", *, reason: Cause | str = "declined") -> Step:
    """Return a step that its service refused to undo, as it had refused to do it before."""
    return _as(not_done(step), NothingToUndo(_cause(reason)))


def undone(step: Step | str = "payment") -> Step:
    """Return a step that was undone; nothing of it is in doubt."""
    step = _to_undo(step)
    step = with_counts(step, attempts=max(2, step.counts.attempts))
    effect = Reverted(key=step.key, result=step.result) if step.key else step.effect
    return _as(replace(step, effect=effect), Undone())


# What the states share


def _step(step: Step | str) -> Step:
    return new(step) if isinstance(step, str) else step


def cause_of(reason: Cause | str | None, *, for_operator: bool = False) -> Cause | None:
    """Return the cause; a text is the word of the service that refused, or of a gateway."""
    code = Code.CALL_REJECTED if for_operator else Code.REFUSED
    cause = Cause(code, {"detail": reason}) if isinstance(reason, str) else reason
    return cause and cause.shortened()


def _cause(reason: Cause | str, *, for_operator: bool = False) -> Cause:
    cause = cause_of(reason, for_operator=for_operator)
    assert cause, "a step in this state has a cause"
    return cause


def _as(step: Step | str, state: State) -> Step:
    return replace(_step(step), state=state)


def _because(state: State, cause: Cause | None) -> State:
    """Return the state with this cause, if it can have one."""
    if isinstance(state, UndoPending):
        return UndoPending(_because(state.wait, cause))  # type: ignore[arg-type] # a wait too
    if isinstance(state, ConditionPending):
        return ConditionPending(cause)
    has_cause = "cause" in {field.name for field in fields(state)}  # type: ignore[arg-type]
    return replace(state, cause=cause) if has_cause else state  # type: ignore[type-var]


def _wait(step: Step, until: datetime | None, cause: Cause | None) -> Wait:
    """Return for what the undo of the step waits until this time."""
    if step.answer_by and cause is None:
        return Deferred(until)
    if until is None:
        return Waiting(cause)
    if step.counts.uncounted:
        return BackingOff(until, cause)
    if cause is None:
        return LateEffectsPossible(until)
    is_cooling = step.counts.cooldowns > 0 and not step.counts.failures
    return (CoolingDown if is_cooling else Delayed)(until, cause)


def _provider_of(agent: str) -> str:
    return PROVIDERS.get(agent, agent)


def _sent(step: Step) -> Step:
    """Return the step with at least one attempt, under a key if an agent does it."""
    counts = replace(step.counts, attempts=step.counts.attempts or 1)
    step = replace(step, counts=counts)
    if step.is_external or isinstance(step.effect, Sent):
        return step
    key = RequestKey(agent=step.agent, provider=_provider_of(step.agent))
    return replace(step, effect=NotDone(key=key))


def _external(step: Step | str) -> Step:
    return with_rules(step, kind=StepKind.EXTERNAL, capability=EXTERNAL_PARTY, undoable=False)


def _fitting(step: Step) -> Step:
    """Return the step with the effect and the state that one of its kind has."""
    effect, state = step.effect, step.state
    if step.is_external:
        if isinstance(effect, Sent):
            effect = NothingSent() if step.result is None else Answered(result=step.result)
        if isinstance(state, Running):
            state = AwaitingExternalEvent(state.complete_by)
        return replace(step, effect=effect, state=state)
    if isinstance(state, AwaitingExternalEvent):
        state = Running(state.complete_by)
    if isinstance(effect, Answered):
        key = RequestKey(agent=step.agent, provider=_provider_of(step.agent))
        effect = Done(key=key, result=effect.result)
    step = replace(step, effect=effect, state=state)
    return _sent(step) if step.counts.attempts else step


def _to_undo(step: Step | str) -> Step:
    """Return a step that there is something to undo of; by default it was done."""
    step = _step(step)
    if not step.rules.undoable:
        raise ValueError(f"step {step.name} cannot be undone")
    return _sent(step) if step.counts.attempts else completed(step)
