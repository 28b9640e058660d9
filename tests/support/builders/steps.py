"""Steps in each of their states, with what is known of their effect, their counts and their rules.

Each function takes a step, or the name of a new one, and returns it as it is in that state. What
belongs to the state alone (times, reason) is set anew. Rules, counts and effect are kept, except
where the state says more about them: a completed step has a result, and nothing of it is in doubt.

A reason is a cause, or the text by which the service refused.

No function names a field of the record, so a test that uses them survives a change of the record.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack

from bench.workflows import PAYMENT_ONLY
from core.life import StepState
from core.orders import OUTSIDE, OnFailure, Step
from engine.conversion.records import old_step
from engine.domain.causes import Cause, Code

from .values import COOLDOWN, NOW, PROVIDERS, THRESHOLD, TIMEOUT

(PAYMENT,) = map(
    old_step,
    PAYMENT_ONLY.initial_steps(timeout=TIMEOUT, threshold=THRESHOLD, cooldown=COOLDOWN),
)
"""The step that is made unless a test gives another one: an agent does it, and it can be undone."""

TIMED_OUT = Cause(Code.TIMED_OUT, {"fault": ""})
"""Why an attempt came to nothing of which no fault was reported."""


class Rules(TypedDict, total=False):
    """The rules of a step, which an order copies from the step's definition."""

    title: str
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
    step, fields = _step(step), dict[str, Any](rules)
    if "on_failure" in rules:
        goes_on = rules["on_failure"] is OnFailure.GO_ON
        fields["goes_on"] = goes_on or PAYMENT.goes_on
        fields["on_failure"] = OnFailure.ERROR if goes_on else rules["on_failure"]
    if "pivot" in rules:
        fields["pivot"] = rules["pivot"] or PAYMENT.pivot
    if "capability" in rules and not step.attempts:
        fields["agent"] = rules["capability"]
    return replace(step, **fields)


def with_counts(
    step: Step | str,
    *,
    attempts: int | None = None,
    failures: int | None = None,
    cooldowns: int | None = None,
    uncounted: int | None = None,
) -> Step:
    """Return a step with these counts; it keeps its others.

    `uncounted` is the number of its last attempts that counted as no failure (SCH-16).
    """
    counts: dict[str, Any] = {
        "attempts": attempts,
        "failure_count": failures,
        "cooldowns": cooldowns,
        "uncounted": uncounted,
    }
    given = {name: count for name, count in counts.items() if count is not None}
    return replace(_step(step), **given)


# What is known of the effect


def nothing_sent(step: Step | str) -> Step:
    """No request was ever sent, so there is no key, and nothing to undo."""
    return replace(
        _step(step),
        attempts=0,
        provider=None,
        in_doubt=False,
        answer_by=None,
        result=None,
        round=0,
        refused_for_good=False,
        key_known_until=None,
        settled_at=None,
    )


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
    if agent:
        step = replace(step, agent=agent, provider=_provider_of(agent))
    key: dict[str, Any] = {
        "provider": provider,
        "round": generation,
        "key_known_until": known_until,
        "settled_at": effects_final_at,
    }
    return replace(step, **{name: value for name, value in key.items() if value is not None})


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
    return replace(keyed, in_doubt=True)


def not_done(step: Step | str, *, refused_for_good: bool = False) -> Step:
    """Return a step each of whose requests was answered, and none had an effect.

    The service may have refused the key for good, so that a resubmit needs a new one.
    """
    return replace(
        _sent(_step(step)),
        in_doubt=False,
        answer_by=None,
        result=None,
        refused_for_good=refused_for_good,
    )


def with_new_key(step: Step) -> Step:
    """Return a step that was not done, and whose next attempt goes out under a key of its own."""
    return replace(
        step, round=step.round + 1, provider=None, refused_for_good=False, in_doubt=False
    )


def with_texts(step: Step, *, reason: Cause | str, result: Mapping[str, Any]) -> Step:
    """Return a step in whatever state it is, with the longest texts that its row has to hold."""
    return replace(step, cause=cause_of(reason), result=result)


def with_link(step: Step | str, token: str | None) -> Step:
    """Return a step that the holder of this token may answer (ANS-6); None: without a link."""
    return replace(_step(step), right=token)


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
    return _as(step, StepState.NOT_STARTED, cause=cause_of(reason), retry_by=retry_by)


def condition_pending(step: Step | str = "payment") -> Step:
    """Return a step whose condition and start time are not evaluated yet (SCH-14, SCH-15)."""
    return _as(step, StepState.NOT_STARTED, unjudged=True)


def scheduled(step: Step | str = "payment", *, at: datetime) -> Step:
    """Return a step that starts at a time which the workflow chose (SCH-15)."""
    return _as(step, StepState.NOT_STARTED, not_before=at)


def backing_off(
    step: Step | str = "payment", *, until: datetime, reason: Cause | str | None = None
) -> Step:
    """Return a step that pauses between two attempts (SCH-16).

    The last attempt counted as no failure, unless the step has failures.
    """
    step = _sent(_step(step))
    counted = step.failure_count > 0
    return replace(
        _as(step, StepState.NOT_STARTED, not_before=until, cause=cause_of(reason)),
        uncounted=PAYMENT.uncounted if counted else step.uncounted or 1,
    )


def cooling_down(
    step: Step | str = "payment", *, until: datetime, reason: Cause | str = TIMED_OUT
) -> Step:
    """Return a step that has reached its threshold, and waits for long (SUP-3).

    Its attempts ended without an answer, so it is in doubt, unless somebody outside was asked.
    """
    tired = _sent(_step(step))
    if tired.capability != OUTSIDE:
        tired = in_doubt(tired)
    tired = with_counts(tired, failures=0, cooldowns=tired.cooldowns or 1)
    retry_by = until + tired.timeout
    return _as(
        tired, StepState.NOT_STARTED, not_before=until, cause=cause_of(reason), retry_by=retry_by
    )


def accepted_by_service(
    step: Step | str = "payment", *, ask_again_at: datetime, finish_by: datetime
) -> Step:
    """Return a step that its service does later, and about which it is asked again (AGT-11)."""
    accepted = replace(_sent(_step(step)), answer_by=finish_by)
    return _as(accepted, StepState.NOT_STARTED, not_before=ask_again_at)


def withdrawn(step: Step | str = "payment") -> Step:
    """Return a step for whose external answer nobody waits any more (SCH-12)."""
    return _as(_external(step), StepState.NOT_STARTED)


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
    step = replace(_as(step, StepState.RUNNING), complete_by=complete_by or started + step.timeout)
    return with_counts(step, attempts=attempt)


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
    done = replace(
        _sent(_step(step)),
        result={} if result is None else result,
        in_doubt=False,
        answer_by=None,
        refused_for_good=False,
    )
    return with_counts(_as(done, StepState.COMPLETED), attempts=attempt)


def skipped_by_operator(step: Step | str = "payment") -> Step:
    """Return a step that was done, or undone, by other means, as an operator says (OPR-4)."""
    return _as(step, StepState.SKIPPED)


def skipped_by_condition(step: Step | str = "payment", *, condition: str = "is_needed") -> Step:
    """Return a step that is not needed, as its condition says (SCH-14)."""
    return _as(
        step, StepState.SKIPPED, cause=Cause(Code.CONDITION_NOT_MET, {"condition": condition})
    )


def skipped_after_failure(
    step: Step | str = "payment", *, reason: Cause | str = "declined"
) -> Step:
    """Return a step that has failed, and without which the order goes on (SCH-13)."""
    optional = with_rules(step, on_failure=OnFailure.GO_ON)
    return _as(_sent(optional), StepState.SKIPPED, cause=cause_of(reason))


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
    given_up = _as(
        _sent(_step(step)),
        StepState.FAILED,
        cause=cause_of(reason, for_operator=for_operator),
        for_operator=for_operator,
    )
    return with_counts(given_up, attempts=attempt)


def failed_before_start(step: Step | str = "payment", *, reason: Cause | str) -> Step:
    """Return a step whose request or condition could not be made, so nothing was ever sent."""
    return _as(nothing_sent(step), StepState.FAILED, cause=cause_of(reason))


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
    return _as(step, StepState.UNDOING, not_before=until or step.settled_at, cause=cause_of(reason))


def undoing(
    step: Step | str = "payment",
    *,
    complete_by: datetime | None = None,
    started: datetime = NOW,
    attempt: int | None = None,
) -> Step:
    """Return a step that an agent undoes."""
    step = _to_undo(step)
    step = replace(_as(step, StepState.UNDOING), complete_by=complete_by or started + step.timeout)
    return with_counts(step, attempts=attempt or max(2, step.attempts))


def undo_failed(
    step: Step | str = "payment",
    *,
    reason: Cause | str = "not voidable",
    for_operator: bool = False,
) -> Step:
    """Return a step whose undo was given up, and whose effect may stand (UND-4)."""
    step = _to_undo(step)
    if step.result is None:
        step = replace(step, in_doubt=True)
    return _as(
        step,
        StepState.FAILED,
        cause=cause_of(reason, for_operator=for_operator),
        for_operator=for_operator,
    )


def nothing_to_undo(step: Step | str = "payment", *, reason: Cause | str = "declined") -> Step:
    """Return a step that its service refused to undo, as it had refused to do it before."""
    return _as(not_done(step), StepState.FAILED, cause=cause_of(reason))


def undone(step: Step | str = "payment") -> Step:
    """Return a step that was undone; nothing of it is in doubt."""
    step = replace(_to_undo(step), in_doubt=False, answer_by=None)
    return _as(with_counts(step, attempts=max(2, step.attempts)), StepState.UNDONE)


# What the states share


def _step(step: Step | str) -> Step:
    return step if isinstance(step, Step) else new(step)


def cause_of(reason: Cause | str | None, *, for_operator: bool = False) -> Cause | None:
    """Return the cause; a text is the word of the service that refused, or of a gateway."""
    code = Code.CALL_REJECTED if for_operator else Code.REFUSED
    cause = Cause(code, {"detail": reason}) if isinstance(reason, str) else reason
    return cause and cause.shortened()


def _as(step: Step | str, state: StepState, **data: Any) -> Step:
    """Return the step in this state, without what belonged to the state before."""
    times = dict.fromkeys(("complete_by", "not_before", "retry_by"))
    before = {**times, "cause": None, "for_operator": False}
    return replace(_step(step), **{**before, "unjudged": PAYMENT.unjudged, "state": state, **data})


def _provider_of(agent: str) -> str:
    return PROVIDERS.get(agent, agent)


def _sent(step: Step) -> Step:
    """Return the step with at least one attempt, at an agent whose provider is known, if any."""
    if step.capability == OUTSIDE:
        return replace(step, attempts=step.attempts or 1)
    if step.attempts and step.provider:
        return step
    return replace(
        step, attempts=step.attempts or 1, provider=step.provider or _provider_of(step.agent)
    )


def _external(step: Step | str) -> Step:
    return with_rules(step, capability=OUTSIDE, undoable=False)


def _to_undo(step: Step | str) -> Step:
    """Return a step that there is something to undo of; by default it was done."""
    step = _step(step)
    if not step.undoable:
        raise ValueError(f"step {step.name} cannot be undone")
    return _sent(step) if step.attempts else completed(step)
