"""Converts the records of today (`core.orders`) to those of `engine.domain`, and back.

What today's records cannot say is guessed here, and only here: each guess has a comment.
"""

import re
from dataclasses import fields
from datetime import UTC, datetime

from core.life import Direction, ProcessState, StepState
from core.orders import MAX_REASON, OUTSIDE, OnFailure, OrderState, Snapshot, Step
from engine.domain import states as s
from engine.domain.causes import Cause, Code, step_failed
from engine.domain.effects import (
    Answered,
    Done,
    Doubt,
    Effect,
    InDoubt,
    Key,
    NotDone,
    NothingSent,
    Reverted,
    Sent,
    UndoInDoubt,
)
from engine.domain.orders import (
    PROCESS_STATE,
    Derived,
    Hold,
    InError,
    Order,
    Pending,
    Processed,
    Processing,
    WorkItem,
)
from engine.domain.steps import Counts, Rules, StepIn, StepKind
from engine.words import words_of

# Causes


_KNOWN = r"(?P<agent>\S+) knows (?P<key>\S+) only until (?P<until>[\d :-]+) UTC"
_WORKFLOW = r"(?P<workflow>\S+) v(?P<version>\d+)"
PATTERNS = {
    Code.TIMED_OUT: r"timed out(?:; (?:last answer: )?(?P<fault>.+))?",
    Code.NOT_BEGUN: r"(?P<agent>\S+) is not known to have begun it",
    Code.NO_EXTERNAL_EVENT: r"nobody has answered in time",
    Code.EXTERNAL_EVENT_MISSING: (
        r"nobody has answered (?P<step>\S+) in time, (?P<failures>\d+) times asked"
    ),
    Code.THRESHOLD_REACHED: (
        r"(?P<step>\S+) timed out (?P<failures>\d+) times"
        r"(?:: the cause is held to be lasting|; (?:last answer: )?(?P<fault>.+))"
    ),
    Code.RESULT_TOO_LONG: r"the service's answer is too long .+ (?P<limit>\d+) characters",
    Code.KEY_FORGOTTEN: rf"it may (?P<undo>have been done|stand), and {_KNOWN}: .+",
    Code.PROVIDER_GONE: (
        r"it may (?P<undo>have been done|stand), and no agent here leads to (?P<provider>\S+): .+"
    ),
    Code.STEP_REMOVED: rf"{_WORKFLOW} has no step (?P<step>\S+): .+",
    Code.REQUEST_FAILED: rf"{_WORKFLOW}, step (?P<step>\S+): request failed: (?P<error>.+)",
    Code.CONDITION_FAILED: (
        rf"{_WORKFLOW}, step (?P<step>\S+): (?P<function>\S+ \S+) failed: (?P<error>.+)"
    ),
    Code.FOUND_NOT_DONE: r"an operator found that it was not done",
    Code.CONDITION_NOT_MET: r"not needed: (?P<condition>.+)",
    Code.CANCELLED: r"cancelled by (?P<by>an operator|the customer)",
    Code.WORKFLOW_RETIRED: (
        r"workflow (?P<workflow>\S+) version (?P<version>\d+) is not part of this app"
    ),
}
NUMBERS = ("failures", "version", "limit")


def cause_of(text: str | None, *, operator_decides: bool = False) -> Cause | None:
    """The cause that has these words; a text that none of ours has is the word of a service."""
    if text is None:
        return None
    for code, pattern in PATTERNS.items():
        if found := re.fullmatch(pattern, text, flags=re.DOTALL):
            cause = Cause(code, _facts(found.groupdict()))
            if words_of(cause) == text:
                return cause
    return Cause(Code.CALL_REJECTED if operator_decides else Code.REFUSED, {"detail": text})


def _facts(found):
    facts = {name: int(text) if name in NUMBERS else text for name, text in found.items()}
    if "fault" in facts:
        facts["fault"] = facts["fault"] or ""
    if "by" in facts:
        facts["by"] = "customer" if facts["by"] == "the customer" else "operator"
    if "undo" in facts:
        facts["is_undo"] = facts.pop("undo") == "stand"
    if "until" in facts:
        until = datetime.strptime(facts.pop("until"), "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
        facts["known_until"] = until.isoformat()
    return facts


def cause_of_order(order: Snapshot) -> Cause | None:
    """The cause of an order: that of a step, named first if the order was undone because of it."""
    text = order.state.reason
    name, separator, rest = (text or "").partition(": ")
    is_undo = order.state.direction is Direction.UNDO
    if is_undo and separator and order.step(name) and cause_of(text).code is Code.REFUSED:
        return step_failed(name, cause_of(rest))
    return cause_of(text)


# To the new records


def to_new(order: Snapshot) -> Order:
    """The order as the new records say it."""
    state = order.state
    return Order(
        submitted=order.order,
        workflow=state.workflow,
        workflow_version=state.workflow_version,
        reply_to=state.reply_to,
        priority=state.priority,
        direction=state.direction,
        state=_order_state(state),
        cause=cause_of_order(order),
        hold=Hold(state.held_by, state.held_because, state.held_since) if state.is_held else None,
        failures=state.failure_count,
        steps=tuple(new_step(step, state) for step in order.steps),
        version=state.version,
        updated_at=state.updated_at,
        derived=Derived(
            complete_by=state.complete_by,
            locked_by=state.locked_by,
            not_before=state.not_before,
            ready_since=state.waits_since,
            work_items=tuple(WorkItem(key=key) for key in state.agenda),
        ),
        etag=order.etag,
        unknown=state.more,
    )


def _order_state(state: OrderState):
    match state.process_state:
        case ProcessState.PENDING:
            return Pending()
        case ProcessState.PROCESSING:
            # Today's record names nobody while only an external event is awaited.
            return Processing(state.locked_by or "")
        case ProcessState.PROCESSED:
            return Processed()
    return InError(state.outcome)


def new_step(old: Step, order: OrderState):
    """The step as the new records say it."""
    return StepIn(
        name=old.name,
        rules=_rules(old),
        counts=Counts(
            attempts=old.attempts,
            failures=old.failure_count,
            uncounted=old.uncounted,
            cooldowns=old.cooldowns,
        ),
        effect=_effect(old),
        state=_state(old, order),
        callback_token=old.right,
        unknown=old.more,
    )


def _rules(old: Step) -> Rules:
    return Rules(
        kind=StepKind.EXTERNAL if old.capability == OUTSIDE else StepKind.AGENT,
        title=old.title,
        capability=old.capability,
        timeout=old.timeout,
        threshold=old.threshold,
        on_failure=OnFailure.GO_ON if old.goes_on else old.on_failure,
        after=old.after,
        uses=old.uses,
        undoable=old.undoable,
        pivot=old.pivot,
        cooldown=old.cooldown,
        max_cooldowns=old.max_cooldowns,
        late_effect_window=old.late_effect_window,
        personal=old.personal,
        fingerprint=old.fingerprint,
    )


def _effect(old: Step) -> Effect:
    if not old.attempts or old.capability == OUTSIDE:
        return NothingSent() if old.result is None else Answered(result=old.result)
    key = Key(
        agent=old.agent,
        provider=old.provider,
        generation=old.round,
        known_until=old.key_known_until,
        effects_final_at=old.settled_at,
    )
    if old.state is StepState.UNDONE:
        return Reverted(key=key, result=old.result)
    if old.effect_unknown:
        doubt = {"key": key, "unanswered": old.in_doubt, "answer_by": old.answer_by}
        # With a result, the doubt is about the undo; today both are one flag.
        if old.result is not None:
            return UndoInDoubt(result=old.result, **doubt)
        return InDoubt(**doubt)
    if old.result is not None:
        return Done(key=key, result=old.result)
    return NotDone(key=key, refused_for_good=old.refused_for_good)


def _state(old: Step, order: OrderState) -> s.State:
    cause = cause_of(old.reason, operator_decides=old.for_operator)
    return STATE_OF[old.state](old, order, cause)


def _not_started(old, order, cause):
    if old.unjudged:
        return s.ConditionPending()
    return s.RequestCancelled() if _is_cancelled(old, order) else _wait(old, cause)


def _running(old, order, cause):
    is_external = old.capability == OUTSIDE
    return (s.AwaitingExternalEvent if is_external else s.Running)(old.complete_by)


def _undoing(old, order, cause):
    return s.Undoing(old.complete_by) if old.complete_by else s.UndoPending(_wait(old, cause))


def _failed(old, order, cause):
    """Failed forward, or back: told apart by the order's direction."""
    if order.direction is Direction.UNDO and old.undoable and old.attempts:
        return (s.UndoFailed if old.undo_failed else s.NothingToUndo)(cause, old.for_operator)
    return s.Failed(cause, old.for_operator, old.unjudged)


STATE_OF = {
    StepState.NOT_STARTED: _not_started,
    StepState.RUNNING: _running,
    StepState.COMPLETED: lambda old, order, cause: s.Completed(),
    StepState.SKIPPED: lambda old, order, cause: s.Skipped(_skip_reason(cause), cause),
    StepState.UNDOING: _undoing,
    StepState.UNDONE: lambda old, order, cause: s.Undone(),
    StepState.FAILED: _failed,
}


def _is_cancelled(old: Step, order: OrderState) -> bool:
    """A cancelled request and one that was reset are told apart by where the order is."""
    was_asked = old.capability == OUTSIDE and old.attempts > 0 and old.reason is None
    has_stopped = order.process_state is ProcessState.ERROR
    return was_asked and (has_stopped or order.direction is Direction.UNDO)


def _skip_reason(cause: Cause | None) -> s.SkipReason:
    """Why a step was skipped, which only words tell today."""
    if cause is None:
        return s.SkipReason.OPERATOR
    is_condition = cause.code is Code.CONDITION_NOT_MET
    return s.SkipReason.CONDITION if is_condition else s.SkipReason.FAILED


def _wait(old: Step, cause: Cause | None) -> s.Wait:
    """Why a step waits: today six meanings of one optional time."""
    until, retry_by = old.not_before, old.retry_by
    if old.answer_by and cause is None:
        return s.Deferred(until)
    if until is None:
        return s.Waiting(cause, retry_by)
    if old.uncounted:
        return s.BackingOff(until, cause, retry_by)
    if cause is not None:
        is_cooling = old.cooldowns > 0 and not old.failure_count
        return (s.CoolingDown if is_cooling else s.Delayed)(until, cause, retry_by)
    if old.state is StepState.UNDOING:
        return s.LateEffectsPossible(until, retry_by)
    return s.Scheduled(until)


# Back to the records of today


def to_old(order: Order) -> Snapshot:
    """The order as today's records say it."""
    derived, hold = order.derived, order.hold
    return Snapshot(
        order=order.submitted,
        state=OrderState(
            order_id=order.order_id,
            workflow=order.workflow,
            workflow_version=order.workflow_version,
            process_state=PROCESS_STATE[type(order.state)],
            locked_by=derived.locked_by,
            complete_by=derived.complete_by,
            failure_count=order.failures,
            version=order.version,
            priority=order.priority,
            waits_since=derived.ready_since,
            not_before=derived.not_before,
            updated_at=order.updated_at,
            direction=order.direction,
            outcome=order.state.outcome if isinstance(order.state, InError) else None,
            reason=words_of(order.cause) if order.cause else None,
            held_by=hold and hold.by,
            held_because=hold and hold.note,
            held_since=hold and hold.since,
            reply_to=order.reply_to,
            agenda=tuple(item.key for item in derived.work_items),
            more=order.unknown,
        ),
        steps=tuple(map(old_step, order.steps)),
        etag=order.etag,
    )


def old_step(step) -> Step:
    """The step as today's records say it."""
    rules, counts, effect, state = step.rules, step.counts, step.effect, step.state
    key = effect.key if isinstance(effect, Sent) else None
    goes_on = rules.on_failure is OnFailure.GO_ON
    is_pending = isinstance(state, s.ConditionPending)
    return Step(
        name=step.name,
        title=rules.title,
        capability=rules.capability,
        agent=step.agent,
        provider=key and key.provider,
        timeout=rules.timeout,
        threshold=rules.threshold,
        on_failure=OnFailure.ERROR if goes_on else rules.on_failure,
        goes_on=goes_on,
        pivot=rules.pivot,
        unjudged=is_pending or (isinstance(state, s.Failed) and state.condition_pending),
        after=rules.after,
        uses=rules.uses,
        personal=rules.personal,
        right=step.callback_token,
        undoable=rules.undoable,
        late_effect_window=rules.late_effect_window,
        cooldown=rules.cooldown,
        max_cooldowns=rules.max_cooldowns,
        cooldowns=counts.cooldowns,
        fingerprint=rules.fingerprint,
        state=s.PATTERN_STATE[type(state)],
        complete_by=step.complete_by,
        settled_at=key and key.effects_final_at,
        not_before=step.not_before,
        retry_by=step.retry_by,
        attempts=counts.attempts,
        failure_count=counts.failures,
        uncounted=counts.uncounted,
        reason=words_of(step.cause)[:MAX_REASON] if step.cause else None,
        result=step.result,
        in_doubt=isinstance(effect, Doubt) and effect.unanswered,
        answer_by=step.answer_by,
        round=key.generation if key else 0,
        refused_for_good=isinstance(effect, NotDone) and effect.refused_for_good,
        key_known_until=key and key.known_until,
        for_operator=getattr(state, "operator_decides", False),
        more=step.unknown,
    )


def differences(old, back) -> set[str]:
    """The fields by which two records of one kind differ."""
    named = (field.name for field in fields(old) if field.compare)
    return {name for name in named if getattr(old, name) != getattr(back, name)}


def lost(old, back):
    """The fields that are lost on the way to the new records and back, but for what nobody reads.

    D2: the refusal of a step that is undone, and the condition of a step that has come to a result.
    """
    found = differences(old, back)
    if old.state in (StepState.UNDOING, StepState.UNDONE):
        found -= {"refused_for_good"}
    if old.state in (StepState.SKIPPED, StepState.COMPLETED):
        found -= {"unjudged"}
    return {f"{name} of a step in {old.state}" for name in found}
