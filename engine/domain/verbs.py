"""The verbs of a step: the only ways from one state to the next.

A verb is a pure function from a step to the next version of the step. It changes state and effect
together. Every verb checks itself against the table of states and events, and raises
`InvalidTransitionError` if the table has no such transition.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from engine.domain import backoff
from engine.domain.causes import Cause, Code
from engine.domain.effects import (
    Done,
    Doubt,
    NotDone,
    RequestKey,
    Reverted,
    Sent,
    doubted,
    next_generation,
    with_late_answer,
    without_acceptance,
    without_deadline,
)
from engine.domain.errors import AppError
from engine.domain.states import (
    BackingOff,
    Completed,
    ConditionPending,
    CoolingDown,
    Deferred,
    Delayed,
    Failed,
    LateEffectsPossible,
    NothingToUndo,
    Running,
    Skipped,
    SkipReason,
    UnderWay,
    UndoFailed,
    Undoing,
    Undone,
    UndoPending,
    Wait,
    Waiting,
)
from engine.domain.steps import Counts, Step, StepIn
from engine.domain.submitted_order import OnFailure
from engine.domain.table import TABLE, TableEvent, kind_of, name_of

# How verbs are checked


class InvalidTransitionError(AppError):
    """The table of states and events has no such transition."""

    def __init__(self, event: TableEvent, step: Step, after: Step | None = None) -> None:
        before = name_of(kind_of(step.state))
        leads = f" does not lead to {name_of(kind_of(after.state))}" if after else ""
        super().__init__(f"{event} of step {step.name} in {before}{leads or ' is not allowed'}")
        self.event, self.step, self.after = event, step, after


Data = ParamSpec("Data")
After = TypeVar("After", bound=Step)


def verb(
    event: TableEvent,
) -> Callable[[Callable[Concatenate[Step, Data], After]], Callable[Concatenate[Step, Data], After]]:
    """Check a transition by this event against the table, before and after."""
    rows = TABLE[event]

    def checked(
        function: Callable[Concatenate[Step, Data], After],
    ) -> Callable[Concatenate[Step, Data], After]:
        @wraps(function)
        def transition(step: Step, /, *args: Data.args, **data: Data.kwargs) -> After:
            targets = rows.get(kind_of(step.state))
            if targets is None:
                raise InvalidTransitionError(event, step)
            after = function(step, *args, **data)
            if kind_of(after.state) not in targets:
                raise InvalidTransitionError(event, step, after)
            return after

        return transition

    return checked


# The verbs

NO_PAUSE = timedelta()


@verb(TableEvent.START)
def start(
    step: Step,
    key: RequestKey,
    complete_by: datetime,
    *,
    callback_token: str | None = None,
    started_at: datetime | None = None,
) -> StepIn[UnderWay]:
    """Record an attempt before its request is sent (SCH-3).

    `started_at` is given if the order's deadline shortens the timeout of the attempt.

    From now on the key of the effect is that of this attempt. The rest of the effect changes when
    the attempt ends.
    """
    is_undo = isinstance(step.state, UndoPending)
    state: UnderWay = Undoing(complete_by) if is_undo else Running(complete_by, started_at)
    effect = step.effect
    effect = replace(effect, key=key) if isinstance(effect, Sent) else NotDone(key=key)
    return under_way(replace(step, effect=effect), state, callback_token)


@verb(TableEvent.COMPLETE)
def complete(step: Step, result: Mapping[str, Any]) -> Step:
    """Record that the step is done with this result, or undone (SCH-5).

    This ends every doubt.
    """
    key, counts = key_of(step), step.counts.without_uncounted()
    if isinstance(step.state, Undoing):
        reverted = Reverted(key=key, result=step.result)
        return replace(step, counts=counts, state=Undone(), effect=reverted)
    done = Done(key=key, result=result)
    return replace(step, counts=counts, state=Completed(), effect=done)


@verb(TableEvent.DEFER)
def defer(
    step: Step,
    now: datetime,
    *,
    retry_after: timedelta,
    answer_within: timedelta,
    unanswered: bool = False,
) -> Step:
    """Record that the service accepted the work (AGT-11).

    The agent calls again after `retry_after`. The service has to finish within `answer_within` of
    its first acceptance. `unanswered` says whether an earlier call of the attempt had no answer.
    """
    answer_by = step.answer_by or now + answer_within
    doubt = replace(doubted(step.effect, unanswered=unanswered), answer_by=answer_by)
    counts, ask_again_at = _uncounted(step, now, retry_after)
    effect = with_late_answer(doubt, step.rules.late_effect_window)
    return replace(_waiting(step, Deferred(ask_again_at)), counts=counts, effect=effect)


@verb(TableEvent.NOT_ATTEMPTED)
def not_attempted(
    step: Step, now: datetime, *, retry_after: timedelta, unanswered: bool = False
) -> Step:
    """Let the step wait without a failure, because the agent did not call (AGT-8, SCH-16).

    `unanswered` says whether an earlier call of the attempt had no answer.
    """
    counts, at = _uncounted(step, now, retry_after)
    effect = doubted(step.effect, unanswered=True) if unanswered else step.effect
    wait: Wait = BackingOff(at) if at else Waiting()
    if step.answer_by:  # it is the service, which has accepted the work, that is asked again
        wait = Deferred(at)
    return replace(_waiting(step, wait), counts=counts, effect=effect)


@verb(TableEvent.REFUSE)
def refuse(step: Step, cause: Cause, *, unanswered: bool = False, for_good: bool = False) -> Step:
    """Record that the service or an external party refused the step (AGT-6, ANS-3).

    The refusal is the final answer to accepted work, so the acceptance leaves no doubt (AGT-11). An
    attempt without an answer does (`unanswered`). If the service would refuse the key again
    (`for_good`), it did not do the work under this key in any attempt (AGT-3).
    """
    effect = doubted(step.effect, unanswered=True) if unanswered else step.effect
    if for_good and step.key:
        effect = NotDone(key=step.key, refused_for_good=True)
    else:
        effect = without_acceptance(effect)
    return after_last_attempt(replace(step, effect=effect), cause, operator_decides=False)


@verb(TableEvent.FAIL)
def fail(
    step: Step, cause: Cause, *, unanswered: bool = False, operator_decides: bool = False
) -> Step:
    """Record that the step failed although its service did not refuse (SCH-8).

    Work that the service accepted stays in doubt (AGT-11). The effect of a step whose undo cannot
    be requested stays in doubt too.
    """
    in_doubt = unanswered or isinstance(step.effect, Doubt) or isinstance(step.state, UndoPending)
    effect = doubted(step.effect, unanswered=True) if in_doubt else step.effect
    return after_last_attempt(
        replace(step, effect=effect), cause, operator_decides=operator_decides
    )


@verb(TableEvent.EXPIRE)
def expire(
    step: Step,
    now: datetime,
    cause: Cause,
    *,
    delay: timedelta = NO_PAUSE,
    operator_decides: bool = False,
) -> Step:
    """Count a failure: the complete-by time passed without an answer (SUP-3).

    The step is tried again, immediately or after `delay`. At its threshold it cools down. After the
    allowed number of cooldowns it fails.
    """
    before = step.counts.without_uncounted()
    counts = replace(before, failures=before.failures + 1)
    effect = doubted(step.effect, unanswered=True)
    failed = replace(step, effect=effect, counts=counts)
    if counts.failures < step.rules.threshold:
        retry_by = now + delay + step.rules.timeout
        kept = cause.shortened()
        wait = Delayed(now + delay, kept, retry_by) if delay else Waiting(kept, retry_by)
        return _waiting(failed, wait)
    if counts.cooldowns < step.rules.max_cooldowns:
        return cooled_down(failed, now, cause)
    return after_last_attempt(
        failed, threshold_reached(failed, cause), operator_decides=operator_decides
    )


@verb(TableEvent.EXPIRE)
def expire_uncounted(step: Step, now: datetime, cause: Cause, *, unbegun: int) -> Step:
    """Let the step wait without a failure (SUP-3, SCH-16).

    `unbegun` is the number of the latest consecutive requests that no agent is known to have begun
    (SUP-9).
    """
    counts, at = _uncounted(step, now)
    counts = replace(counts, unbegun=unbegun)
    return _in_doubt(replace(step, counts=counts), at, now, cause)


@verb(TableEvent.EXPIRE)
def expire_overloaded(step: Step, now: datetime, cause: Cause) -> Step:
    """Let the step wait without a failure, because its agent is overloaded (SUP-3, SCH-16)."""
    counts, at = _uncounted(step, now)
    counts = replace(counts, overloaded=counts.overloaded + 1)
    return _in_doubt(replace(step, counts=counts), at, now, cause)


@verb(TableEvent.EXPIRE)
def give_up_unbegun(step: Step, now: datetime, cause: Cause) -> Step:
    """End the attempts at a step that no agent begins (SUP-9).

    The step cools down, fails or is skipped, according to its rules. It never starts the undo of
    the order.

    A request that is under way is in doubt, and so is a step whose undo no agent begins. A step
    without a request is not.
    """
    in_doubt = isinstance(step.state, UnderWay | UndoPending)
    effect = doubted(step.effect, unanswered=True) if in_doubt else step.effect
    given_up = replace(step, effect=effect)
    if step.counts.cooldowns < step.rules.max_cooldowns:
        return cooled_down(given_up, now, cause)
    # The absence of an agent says nothing about the order, so an operator decides.
    decides = step.rules.on_failure is OnFailure.UNDO
    return after_last_attempt(given_up, cause, operator_decides=decides)


@verb(TableEvent.EXPIRE)
def expire_in_undo(step: Step, now: datetime) -> Step:
    """Undo the step instead of retrying it, because the order is being undone (SUP-3, UND-2)."""
    waiting = replace(step, effect=doubted(step.effect, unanswered=True), state=Waiting())
    return _undo_of(waiting, now=now)


@verb(TableEvent.REQUEST_UNDO)
def request_undo(step: Step) -> Step:
    """Let the step wait for its undo, if it has one and ever had an attempt (UND-1, UND-2).

    A step that its service refused waits too, and so does a completed step until none of its other
    calls can take effect.
    """
    # After a refusal too, the same request may have been delivered twice.
    return _undo_of(step)


@verb(TableEvent.RESET)
def reset(step: Step) -> Step:
    """Let the step start afresh after an operator's resubmit (OPR-3, UND-4)."""
    effect = without_deadline(step.effect)
    fresh = replace(step, counts=step.counts.afresh(), callback_token=None, effect=effect)
    if isinstance(step.state, UndoFailed):
        return replace(fresh, state=UndoPending())
    if isinstance(effect, NotDone) and effect.refused_for_good:
        fresh = replace(fresh, effect=NotDone(key=next_generation(effect.key)))
    is_pending = isinstance(step.state, Failed) and step.state.condition_pending
    return replace(fresh, state=ConditionPending() if is_pending else Waiting())


@verb(TableEvent.SKIP)
def skip(step: Step) -> Step:
    """Skip the step. An operator reported that it was done, or undone, by other means (OPR-4)."""
    return replace(step, state=Skipped(SkipReason.OPERATOR))


@verb(TableEvent.SETTLE)
def settle_done(step: Step, result: Mapping[str, Any]) -> Step:
    """Complete a step in doubt, because an operator found that it was done (OPR-12)."""
    return replace(step, state=Completed(), effect=Done(key=key_of(step), result=result))


@verb(TableEvent.SETTLE)
def settle_not_done(step: Step) -> Step:
    """End the doubt, because an operator found that the step was not done (OPR-12).

    Any provider may then do the step. A step that counted as done, because it was skipped or
    restored as such, becomes failed.
    """
    key = replace(key_of(step), known_until=None, provider=None)
    known = replace(step, effect=NotDone(key=key))
    if step.skipped_as_done or isinstance(step.state, Completed):
        return replace(known, state=Failed(Cause(Code.FOUND_NOT_DONE)))
    if isinstance(step.state, Deferred):
        at = step.state.ask_again_at
        return replace(known, state=BackingOff(at) if at else Waiting())
    return known


def doubt_since_copy(step: Step, key: RequestKey) -> Step:
    """Put the step in doubt under this key: it may have been tried since its copy (OPR-11).

    The state stays as it was copied, so the table has no row for this change.
    """
    counts = replace(step.counts, attempts=max(step.counts.attempts, 1))
    effect = replace(step.effect, key=key) if isinstance(step.effect, Sent) else NotDone(key=key)
    return replace(step, counts=counts, effect=doubted(effect, unanswered=True))


# What verbs of optional behaviour need too


def threshold_reached(failed: Step, last: Cause) -> Cause:
    """Return the cause of a step that timed out too often.

    `last` is the cause of its last time-out.
    """
    failures, fault = failed.counts.failures, last.facts["fault"]
    facts = {"step": failed.name, "failures": failures, "fault": fault}
    return Cause(Code.THRESHOLD_REACHED, facts)


def no_agent_began(step: Step, requests: int) -> Cause:
    """Return the cause of a step that no agent begins, after this number of requests (SUP-9)."""
    facts = {"step": step.name, "agent": step.agent, "attempts": requests}
    return Cause(Code.NO_AGENT_BEGAN, facts)


def cooled_down(failed: Step, now: datetime, cause: Cause) -> Step:
    """Let a step at its threshold cool down, with a fresh count of failures (SUP-3)."""
    rested = failed.counts.without_uncounted()
    counts = replace(rested, failures=0, cooldowns=rested.cooldowns + 1)
    until = now + failed.rules.cooldown
    wait = CoolingDown(until, cause.shortened(), until + failed.rules.timeout)
    return _waiting(replace(failed, counts=counts), wait)


def without_retry_by(step: Step) -> Step:
    """Return the step without the complete-by time that a supervisor gave to its next attempt."""
    wait = step.wait
    if isinstance(wait, Waiting | Delayed | BackingOff | CoolingDown | LateEffectsPossible):
        return _waiting(step, replace(wait, retry_by=None))
    return step


def under_way(step: Step, state: UnderWay, callback_token: str | None) -> StepIn[UnderWay]:
    """Return the step with one more attempt. An existing callback token stays."""
    counts = replace(step.counts, attempts=step.counts.attempts + 1)
    token = step.callback_token or callback_token
    return StepIn(
        name=step.name,
        rules=step.rules,
        counts=counts,
        effect=step.effect,
        state=state,
        callback_token=token,
        unknown=step.unknown,
    )


def key_of(step: Step) -> RequestKey:
    """Return the key under which requests were sent.

    Raises `ValueError` if no request was sent.
    """
    if step.key is None:
        raise ValueError(f"no request of step {step.name} was sent")
    return step.key


def after_last_attempt(step: Step, cause: Cause, *, operator_decides: bool) -> Step:
    """Return the step after its last attempt: failed, or skipped if its rule says so (SCH-13)."""
    kept = cause.shortened()
    step = replace(step, counts=step.counts.without_uncounted())
    if isinstance(step.state, Undoing | UndoPending):
        may_stand = not isinstance(step.effect, NotDone)
        state = UndoFailed if may_stand else NothingToUndo
        return replace(step, state=state(kept, operator_decides))
    if step.rules.on_failure is OnFailure.CONTINUE and not operator_decides:
        return replace(step, state=Skipped(SkipReason.FAILED, kept))
    is_pending = isinstance(step.state, ConditionPending)
    return replace(step, state=Failed(kept, operator_decides, is_pending))


# What verbs share


def _uncounted(
    step: Step, now: datetime, retry_after: timedelta = timedelta()
) -> tuple[Counts, datetime | None]:
    """Return the counts after one more uncounted attempt, and the start of the next attempt."""
    counts = replace(step.counts, uncounted=step.counts.uncounted + 1, unbegun=0)
    started_at = step.started_at or now
    return counts, backoff.next_start(started_at, now, counts.uncounted, retry_after)


def _in_doubt(step: Step, at: datetime | None, now: datetime, cause: Cause) -> Step:
    """Return the step as it waits after a call without an answer, until `at` if it is given."""
    retry_by, kept = (at or now) + step.rules.timeout, cause.shortened()
    wait = BackingOff(at, kept, retry_by) if at else Waiting(kept, retry_by)
    return _waiting(replace(step, effect=doubted(step.effect, unanswered=True)), wait)


def _waiting(step: Step, wait: Wait) -> Step:
    """Return the step as it waits for the next attempt, to do or to undo it."""
    is_undo = isinstance(step.state, Undoing | UndoPending)
    return replace(step, state=UndoPending(wait) if is_undo else wait)


def _undo_of(step: Step, now: datetime | None = None) -> Step:
    """Return the step as it waits for its undo, or unchanged if there is nothing to undo.

    `now` is given if the supervisor requests the attempt and so sets its complete-by time.
    """
    effect = step.effect
    if not step.rules.undoable or not isinstance(effect, Sent):
        return step
    key = effect.key
    if isinstance(effect, NotDone) and not step.skipped_as_done:
        key = replace(key, known_until=None)  # its undo needs no key that is still known (AGT-12)
    final_at = key.effects_final_at
    retry_by = (final_at or now) + step.rules.timeout if now else None
    wait = LateEffectsPossible(final_at, retry_by) if final_at else Waiting(None, retry_by)
    return replace(
        step,
        counts=step.counts.afresh(),
        effect=without_deadline(replace(effect, key=key)),
        state=UndoPending(wait),
    )
