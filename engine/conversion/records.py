"""The records of an order and of its steps, to the new ones and back.

What today's records cannot say is guessed here, and only here: each guess has a comment.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar, cast

from core.life import Direction, ProcessState, StepState
from core.orders import OUTSIDE, OnFailure
from core.orders import OrderState as StateToday
from core.orders import Snapshot as OrderToday
from core.orders import Step as StepToday
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
    UndoInDoubt,
)
from engine.domain.orders import (
    PROCESS_STATE,
    Derived,
    Hold,
    InError,
    Order,
    OrderState,
    Pending,
    Processed,
    Processing,
    WorkItem,
)
from engine.domain.steps import Counts, Rules, Step, StepIn, StepKind

T = TypeVar("T")

# To the new records


def to_new(order: OrderToday) -> Order:
    """Return the order as the new records have it."""
    state = order.state
    hold = None
    if state.held_since:
        hold = Hold(state.held_by or "", state.held_because or "", state.held_since)
    return Order(
        submitted=order.order,
        workflow=state.workflow,
        workflow_version=state.workflow_version,
        reply_to=state.reply_to,
        priority=state.priority,
        direction=state.direction,
        state=_order_state(state),
        cause=state.cause,
        hold=hold,
        failures=state.failure_count,
        steps=tuple(_new_step(step, state) for step in order.steps),
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


def _order_state(state: StateToday) -> OrderState:
    match state.process_state:
        case ProcessState.PENDING:
            return Pending()
        case ProcessState.PROCESSING:
            # Today's record names nobody while only an external event is awaited.
            return Processing(state.locked_by or "")
        case ProcessState.PROCESSED:
            return Processed()
    return InError(_set(state.outcome))


def _new_step(old: StepToday, order: StateToday) -> Step:
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


def _rules(old: StepToday) -> Rules:
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


def _effect(old: StepToday) -> Effect:
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
    if old.effect_unknown and old.result is not None:
        # With a result, the doubt is about the undo; today both are one flag.
        return UndoInDoubt(
            key=key, result=old.result, unanswered=old.in_doubt, answer_by=old.answer_by
        )
    if old.effect_unknown:
        return InDoubt(key=key, unanswered=old.in_doubt, answer_by=old.answer_by)
    if old.result is not None:
        return Done(key=key, result=old.result)
    return NotDone(key=key, refused_for_good=old.refused_for_good)


def _state(old: StepToday, order: StateToday) -> s.State:
    return _STATES[old.state](old, order, old.cause)


def _not_started(old: StepToday, order: StateToday, cause: Cause | None) -> s.State:
    if old.unjudged:
        return s.ConditionPending(cause)
    return s.RequestCancelled() if _is_cancelled(old, order) else _wait(old, cause)


def _running(old: StepToday, order: StateToday, cause: Cause | None) -> s.State:
    kind = s.AwaitingExternalEvent if old.capability == OUTSIDE else s.Running
    return kind(_set(old.complete_by))


def _undoing(old: StepToday, order: StateToday, cause: Cause | None) -> s.State:
    return s.Undoing(old.complete_by) if old.complete_by else s.UndoPending(_wait(old, cause))


def _failed(old: StepToday, order: StateToday, cause: Cause | None) -> s.State:
    """Return how the step failed: forward or back, which the order's direction tells."""
    if order.direction is Direction.UNDO and old.undoable and old.attempts:
        kind = s.UndoFailed if old.undo_failed else s.NothingToUndo
        return kind(_set(cause), old.for_operator)
    return s.Failed(_set(cause), old.for_operator, old.unjudged)


_STATES: Mapping[StepState, Callable[[StepToday, StateToday, Cause | None], s.State]] = {
    StepState.NOT_STARTED: _not_started,
    StepState.RUNNING: _running,
    StepState.COMPLETED: lambda old, order, cause: s.Completed(),
    StepState.SKIPPED: lambda old, order, cause: s.Skipped(_skip_reason(cause), cause),
    StepState.UNDOING: _undoing,
    StepState.UNDONE: lambda old, order, cause: s.Undone(),
    StepState.FAILED: _failed,
}


def _set(value: T | None) -> T:
    """Return a value that is set in this state, which the type of today's record does not say."""
    return cast("T", value)


def _is_cancelled(old: StepToday, order: StateToday) -> bool:
    """Whether the request is cancelled, and not reset: the state of the order tells."""
    was_asked = old.capability == OUTSIDE and old.attempts > 0 and old.cause is None
    has_stopped = order.process_state is ProcessState.ERROR
    return was_asked and (has_stopped or order.direction is Direction.UNDO)


def _skip_reason(cause: Cause | None) -> s.SkipReason:
    """Return why a step was skipped, which only its cause tells today."""
    if cause is None:
        return s.SkipReason.OPERATOR
    is_condition = cause.code is Code.CONDITION_NOT_MET
    return s.SkipReason.CONDITION if is_condition else s.SkipReason.FAILED


def _wait(old: StepToday, cause: Cause | None) -> s.Wait:
    """Return why a step waits: today six meanings of one optional time."""
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


def to_old(order: Order) -> OrderToday:
    """Return the order as today's records have it."""
    steps = tuple(map(old_step, order.steps))
    return OrderToday(order=order.submitted, state=old_state(order), steps=steps, etag=order.etag)


def old_state(order: Order) -> StateToday:
    """Return the state of the order as today's records have it."""
    derived, hold = order.derived, order.hold
    return StateToday(
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
        held_by=hold.by if hold else None,
        held_because=hold.note if hold else None,
        held_since=hold.since if hold else None,
        reply_to=order.reply_to,
        agenda=tuple(item.key for item in derived.work_items),
        more=order.unknown,
    )


def old_step(step: Step) -> StepToday:
    """Return the step as today's records have it."""
    rules, counts, effect, key = step.rules, step.counts, step.effect, step.key
    goes_on = rules.on_failure is OnFailure.GO_ON
    is_pending = isinstance(step.state, s.ConditionPending)
    return StepToday(
        name=step.name,
        title=rules.title,
        capability=rules.capability,
        agent=step.agent,
        provider=key.provider if key else None,
        timeout=rules.timeout,
        threshold=rules.threshold,
        on_failure=OnFailure.ERROR if goes_on else rules.on_failure,
        goes_on=goes_on,
        pivot=rules.pivot,
        unjudged=is_pending or (isinstance(step.state, s.Failed) and step.state.condition_pending),
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
        state=s.PATTERN_STATE[type(step.state)],
        complete_by=step.complete_by,
        settled_at=key.effects_final_at if key else None,
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
        key_known_until=key.known_until if key else None,
        for_operator=getattr(step.state, "operator_decides", False),
        more=step.unknown,
    )
