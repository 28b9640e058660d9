"""What operators may do to an order, and when it makes sense (OPR-3, OPR-4).

Each action is a change of the state like any other, so it survives any crash; its message only wakes (OPR-6).
"""

from dataclasses import replace
from datetime import datetime

from core.actions import FREED, RESUBMITTED, to_mend, why_not_cancel, why_not_mend, why_not_skip
from core.changes import Change, HistoryEntry, transition
from core.compensation import turn_back
from core.errors import RefusedError
from core.happenings import ActedOn, Skipped
from core.orders import Direction, ProcessState, Snapshot, Step, StepState
from operators.requests import OperatorRequest, SkipRequest

CANCELLED = "cancelled by an operator"
"""The reason that the order shows; who it was, and why, stands in the history."""


def resubmit(order: Snapshot, request: OperatorRequest, now: datetime) -> Change:
    """Let the order go on, forward or back, from the steps that failed, with a fresh count (OPR-3, UND-4).

    Raises `RefusedError` for an order that is not in `Error`, or that was undone completely.
    """
    _demand(why_not_mend(order, RESUBMITTED))
    failed = order.in_state(StepState.FAILED)
    after = order.with_steps(*(_afresh(step, order.state.direction) for step in failed))
    return _go_on(order, after, _entry(request, now, ActedOn(what="resubmitted", note=request.note)))


def skip(order: Snapshot, request: SkipRequest, now: datetime) -> Change:
    """Leave out a step that failed, because it was done, or taken back, by other means (OPR-4).

    The order goes on unless another step has failed too. On the way forward a step that somebody needs cannot be left
    out. Should the order be undone later, a skipped step that was ever tried is undone like any other (UND-2).

    Raises `RefusedError` where it makes no sense.
    """
    _demand(why_not_mend(order, FREED))
    step = _failed_step(order, request.step)
    _demand(why_not_skip(order, step))
    after = order.with_steps(replace(step, state=StepState.SKIPPED, complete_by=None, reason=None, for_operator=False))
    left = to_mend(after)
    skipped = Skipped(what="step-skipped" if left else "skipped", step=step.name, note=request.note)
    entry = _entry(request, now, skipped)
    if left:
        return transition(order, after.with_state(reason=left[0].reason), entry)
    return _go_on(order, after, entry)


def cancel(order: Snapshot, request: OperatorRequest, now: datetime) -> Change:
    """Ask for the undo of an order that is not finished, whatever it is doing (OPR-4, UND-1).

    Steps that run answer or expire first, so an order that a scheduler handles stays with it (SCH-12).

    Raises `RefusedError` for an order that is processed, undone, or being undone.
    """
    _demand(why_not_cancel(order))
    after = turn_back(order).with_state(reason=CANCELLED)
    entry = _entry(request, now, ActedOn(what="cancelled", note=request.note))
    if order.state.process_state is ProcessState.PROCESSING:
        return transition(order, after, entry)
    after = after.with_state(process_state=ProcessState.PENDING, complete_by=None, outcome=None)
    return transition(order, after, entry)


def _demand(why_not: str) -> None:
    if why_not:
        raise RefusedError(why_not)


def _failed_step(order: Snapshot, name: str | None) -> Step:
    """Return the step that is meant; raises `RefusedError` if that is none, or could be several."""
    failed = to_mend(order)
    meant = [step for step in failed if name in (None, step.name)]
    names = ", ".join(step.name for step in failed) or "none"
    if not meant:
        raise RefusedError(f"only a step that has failed can be skipped; of this order that is: {names}")
    if len(meant) > 1:
        raise RefusedError(f"several steps have failed, name one of them: {names}")
    return meant[0]


def _afresh(step: Step, direction: Direction) -> Step:
    """Reset the failure count, but never the attempts: they tell a stale reply from a current one."""
    back = direction is Direction.UNDO
    if back and not step.undo_failed:
        return step  # it was refused on the way forward: there is nothing to undo
    return replace(
        step,
        state=StepState.UNDOING if back else StepState.NOT_STARTED,
        failure_count=0,
        cooldowns=0,
        not_before=None,
        complete_by=None,
        reason=None,
        for_operator=False,
    )


def _go_on(order: Snapshot, after: Snapshot, entry: HistoryEntry) -> Change:
    """Let any scheduler claim the order, with a fresh count."""
    after = after.with_state(
        process_state=ProcessState.PENDING,
        locked_by=None,
        complete_by=None,
        failure_count=0,
        outcome=None,
        reason=None,
    )
    return transition(order, after, entry)


def _entry(request: OperatorRequest, now: datetime, happened: ActedOn | Skipped) -> HistoryEntry:
    return HistoryEntry(at=now, actor=f"operator/{request.operator}", happened=(happened,))
