"""The compensating transaction: how an order is undone (UND-1, UND-2).

The supervisor, the scheduler or an operator writes the request for it to the state. The effect on
the steps is the same in each case and needs no workflow: each step's record shows whether the step
can be undone.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from core.changes import Change, HistoryEntry, transition
from core.happenings import (
    Ended,
    Happening,
    PassedOver,
    StepFailed,
    UndoRequested,
    Withdrawn,
)
from core.life import Direction, Outcome, StepState
from core.orders import OnFailure, Snapshot, Step
from engine.domain.causes import Cause, step_failed


def after_a_failure(before: Snapshot, after: Snapshot, entry: HistoryEntry) -> Change:
    """Start no more steps (SCH-12): agents answer or expire, then the order is given up."""
    if not after.at_work():
        return give_up(before, after, entry)
    return transition(before, after, entry)


def failures_of(step: Step, cause: Cause) -> tuple[Happening, ...]:
    """Return the history events of a step that has just failed for good."""
    failed = StepFailed(step=step.name, attempt=step.attempts, cause=cause)
    passed_over = step.state is StepState.SKIPPED
    return (failed, PassedOver(step=step.name)) if passed_over else (failed,)


def withdrawn(order: Snapshot) -> Snapshot:
    """Return the order with no answer awaited any more; a resubmit asks for it anew (SCH-12)."""
    steps = (
        replace(step, state=StepState.NOT_STARTED, complete_by=None) for step in order.awaited()
    )
    return order.with_steps(*steps)


def withdrawals(order: Snapshot) -> tuple[Withdrawn, ...]:
    """Return the history events of what `withdrawn` withdraws."""
    return tuple(Withdrawn(step=step.name, attempt=step.attempts) for step in order.awaited())


def give_up(before: Snapshot, after: Snapshot, entry: HistoryEntry) -> Change:
    """Return the end of an order, or the request to undo it if a failed step's rule asks for that.

    A failure that did not come from the step's service never asks for the undo: an operator has to
    look at it first. So it is with an order that is past its point of no return (UND-6).
    """
    failed = after.in_state(StepState.FAILED)
    for step in failed:
        asks = step.on_failure is OnFailure.UNDO and not step.for_operator
        if asks and step.cause and not after.passed_pivots():
            return ask_for_undo(before, after, step, step.cause, entry)
    return end(before, after, Outcome.FAILED, failed[0], entry)


def ask_for_undo(
    before: Snapshot, after: Snapshot, step: Step, cause: Cause, entry: HistoryEntry
) -> Change:
    """Return the request to undo the order, which any scheduler may claim (UND-1)."""
    entry = entry.also(*withdrawals(after), UndoRequested(step=step.name, cause=cause))
    after = turn_back(after).requeued().with_state(cause=step_failed(step.name, cause))
    return transition(before, after, entry)


def end(
    before: Snapshot, after: Snapshot, outcome: Outcome, stuck: Step | None, entry: HistoryEntry
) -> Change:
    """Set an order on which no agent works to `Error` (SCH-8, SCH-12), with an alert (ALR-1)."""
    cause = stuck.cause if stuck else after.state.cause
    name = stuck.name if stuck else None
    entry = entry.also(*withdrawals(after), Ended(what=outcome.value, step=name, cause=cause))
    return transition(before, withdrawn(after).ended(outcome, cause), entry)


def turn_back(order: Snapshot) -> Snapshot:
    """Return the order with every step that was done, or may have been, waiting for its undo.

    Agents answer or expire first (SCH-12); then `to_be_undone` is applied to each of their steps.
    No answer from outside is awaited any more.
    """
    order = withdrawn(order)
    steps = (step if step.runs else to_be_undone(step) for step in order.steps)
    return order.with_steps(*steps).with_state(direction=Direction.UNDO)


def to_be_undone(step: Step) -> Step:
    """Return the step as it waits for its undo, if there may be anything to undo (UND-2).

    This holds for every step that was ever tried: even after a refusal, the same request may have
    been delivered twice. For the same reason a completed step waits too, until none of its other
    calls can take effect. Where certainly nothing was done, the service may have forgotten the key
    (AGT-12).
    """
    if not step.undoable or not step.attempts:
        return step
    return replace(
        step,
        state=StepState.UNDOING,
        complete_by=None,
        failure_count=0,
        uncounted=0,
        cooldowns=0,
        cause=None,
        for_operator=False,
        not_before=step.settled_at,
        retry_by=None,
        answer_by=None,
        in_doubt=step.effect_unknown,
        key_known_until=step.key_known_until if step.may_be_done else None,
    )


def settled_at(step: Step, start: datetime, clock_tolerance: timedelta) -> datetime | None:
    """Return when no call of the step can take effect any more, given one more attempt (UND-2).

    The time stays as it is if the attempt is to undo the step, or the service refuses undone keys.
    """
    if not step.late_effect_window or step.state is StepState.UNDOING:
        return step.settled_at
    settled = start + step.timeout + clock_tolerance + step.late_effect_window
    return max(settled, step.settled_at or settled)
