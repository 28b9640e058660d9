"""Converts the records of today (`core.orders`) to those of `engine.domain`, and back.

What today's records cannot say is guessed here, and only here: each guess has a comment.
"""

from dataclasses import fields

from core.life import Direction, ProcessState, StepState
from core.orders import OUTSIDE, OnFailure, OrderState, Snapshot, Step
from engine.domain import states as s
from engine.domain.causes import Cause, Code
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
        cause=state.cause,
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
    return STATE_OF[old.state](old, order, old.cause)


def _not_started(old, order, cause):
    if old.unjudged:
        return s.ConditionPending(cause)
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
    was_asked = old.capability == OUTSIDE and old.attempts > 0 and old.cause is None
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
            cause=order.cause,
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
        cause=step.cause,
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
