"""What operators may do to an order, and when it makes sense (OPR-3, OPR-4).

Each action is a change of the state like any other, so it survives any crash; its message only wakes (OPR-6).
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial

from core.changes import Change, HistoryEntry, transition
from core.compensation import turn_back
from core.errors import RefusedError
from core.happenings import ActedOn, Skipped
from core.orders import DONE, Direction, Outcome, ProcessState, Snapshot, Step, StepState
from core.workflow import StepDefinition, Workflows
from operators.requests import OperatorRequest, SkipRequest

CANCELLED = "cancelled by an operator"
"""The reason that the order shows; who it was, and why, stands in the history."""

NOBODY = OperatorRequest(operator="nobody", note="only asks")


def resubmit(order: Snapshot, request: OperatorRequest, now: datetime) -> Change:
    """Let the order go on, forward or back, from the steps that failed, with a fresh count (OPR-3, UND-4).

    Raises `RefusedError` for an order that is not in `Error`, or that was undone completely.
    """
    _demand_error(order, "resubmitted")
    failed = order.in_state(StepState.FAILED)
    after = order.with_steps(*(_afresh(step, order.state.direction) for step in failed))
    return _go_on(order, after, _entry(request, now, ActedOn(what="resubmitted", note=request.note)))


def skip(order: Snapshot, request: SkipRequest, workflows: Workflows, now: datetime) -> Change:
    """Leave out a step that failed, because it was done, or taken back, by other means (OPR-4).

    The order goes on unless another step has failed too. On the way forward a step that somebody needs cannot be left
    out. Should the order be undone later, a skipped step that was ever tried is undone like any other (UND-2).

    Raises `RefusedError` where it makes no sense.
    """
    _demand_error(order, "freed of a step that failed")
    step = _failed_step(order, request.step)
    if order.state.direction is Direction.FORWARD:
        _demand_unneeded(order, step, workflows)
    after = order.with_steps(replace(step, state=StepState.SKIPPED, complete_by=None, reason=None, for_operator=False))
    left = _failed(after)
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
    state = order.state
    if state.process_state is ProcessState.PROCESSED:
        raise RefusedError("the order is Processed: what takes it back is a workflow of its own, such as `return`")
    if state.outcome is Outcome.UNDONE:
        raise RefusedError("the order was undone completely already")
    if state.direction is Direction.UNDO:
        hint = ": a resubmit lets the undo go on" if state.process_state is ProcessState.ERROR else ""
        raise RefusedError(f"the order is being undone already{hint}")
    after = turn_back(order).with_state(reason=CANCELLED)
    entry = _entry(request, now, ActedOn(what="cancelled", note=request.note))
    if state.process_state is ProcessState.PROCESSING:
        return transition(order, after, entry)
    after = after.with_state(process_state=ProcessState.PENDING, complete_by=None, outcome=None)
    return transition(order, after, entry)


def possible(order: Snapshot, workflows: Workflows, now: datetime) -> list[str]:
    """Return what an operator can do with the order as it is: found by trying, so it is what is done."""
    tries: list[tuple[str, Callable[[], Change]]] = [
        ("resubmit", lambda: resubmit(order, NOBODY, now)),
        *(("skip", partial(skip, order, _nobody_skips(step), workflows, now)) for step in _failed(order)),
        ("cancel", lambda: cancel(order, NOBODY, now)),
    ]
    return list(dict.fromkeys(name for name, action in tries if _makes_sense(action)))


def _makes_sense(action: Callable[[], Change]) -> bool:
    try:
        action()
    except RefusedError:
        return False
    return True


def _nobody_skips(step: Step) -> SkipRequest:
    return SkipRequest(operator=NOBODY.operator, note=NOBODY.note, step=step.name)


def _demand_error(order: Snapshot, what: str) -> None:
    if order.state.process_state is not ProcessState.ERROR:
        raise RefusedError(f"the order is {order.state.process_state}: only one in Error can be {what}")
    if order.state.outcome is Outcome.UNDONE:
        raise RefusedError("the order was undone completely: there is nothing to go on with")


def _failed(order: Snapshot) -> tuple[Step, ...]:
    """Return the steps that failed; of an order that goes back, those of which the undo failed."""
    failed = order.in_state(StepState.FAILED)
    back = order.state.direction is Direction.UNDO
    return tuple(step for step in failed if step.undo_failed) if back else failed


def _failed_step(order: Snapshot, name: str | None) -> Step:
    """Return the step that is meant; raises `RefusedError` if that is none, or could be several."""
    failed = _failed(order)
    meant = [step for step in failed if name in (None, step.name)]
    names = ", ".join(step.name for step in failed) or "none"
    if not meant:
        raise RefusedError(f"only a step that has failed can be skipped; of this order that is: {names}")
    if len(meant) > 1:
        raise RefusedError(f"several steps have failed, name one of them: {names}")
    return meant[0]


def _demand_unneeded(order: Snapshot, step: Step, workflows: Workflows) -> None:
    state = order.state
    workflow = workflows.find(state.workflow, state.workflow_version)
    if workflow is None:
        raise RefusedError(f"workflow {state.workflow} version {state.workflow_version} is not part of this app")
    to_come = (each.name for each in order.steps if each.name != step.name and each.state not in DONE)
    if needing := [name for name in to_come if _uses(workflow.definition(name), step)]:
        raise RefusedError(f"{', '.join(needing)} cannot be done without what {step.name} answers")


def _uses(definition: StepDefinition | None, step: Step) -> bool:
    """Whether a step's request is made from the other's answer; if its workflow was changed, nobody can tell."""
    return definition is None or step.name in definition.uses


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
