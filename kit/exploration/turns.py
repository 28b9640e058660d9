"""Whose turn it is in an order, by its workflow: the shipped code is not asked."""

from collections.abc import Mapping, Sequence

from core.life import Direction, StepState
from core.orders import OUTSIDE, Snapshot, Step
from core.workflow import Workflow, Workflows


def ready(order: Snapshot, workflows: Workflows) -> list[Step]:
    """Return the steps whose turn it is, whether or not their time has come."""
    if order.state.held_since:
        return []
    state = order.state
    workflow = workflows.find(state.workflow, state.workflow_version)
    if workflow is None:  # of another version
        workflow = next(each for each in workflows.all if each.name == state.workflow)
    by_name = {step.name: step for step in order.steps}
    if order.state.direction is Direction.UNDO:
        owed = {
            step.name for step in order.steps if step.state is StepState.UNDOING or step.undo_failed
        }
        waiting = [
            step
            for step in order.steps
            if step.state is StepState.UNDOING and step.complete_by is None
        ]
        forward = order.in_state(StepState.RUNNING)
        return [step for step in waiting if not (forward or owed & dependents(workflow, step.name))]
    over = {
        step.name for step in order.steps if step.state in (StepState.COMPLETED, StepState.SKIPPED)
    }
    open_now = [each.name for each in workflow.steps if over >= before(workflow, each.name)]
    first = [by_name[name] for name in open_now if by_name[name].state is StepState.NOT_STARTED]
    return [] if order.in_state(StepState.FAILED) else first


def before(workflow: Workflow, step: str) -> set[str]:
    """Return the steps that come before this one, directly or not.

    An answer from outside may come before its turn, so all of them have to be done.
    """
    return _reached(step, {each.name: each.after for each in workflow.steps})


def at_work(order: Snapshot) -> list[Step]:
    """Return the steps at which agents are, or may be."""
    return [step for step in order.running() if step.capability != OUTSIDE]


def awaited(order: Snapshot) -> list[Step]:
    """Return the steps that wait for an answer from outside."""
    return [step for step in order.running() if step.capability == OUTSIDE]


def dependents(workflow: Workflow, step: str) -> set[str]:
    """Return the steps that come after this one, directly or not, by the workflow itself."""
    after: dict[str, list[str]] = {}
    for definition in workflow.steps:
        for name in definition.after:
            after.setdefault(name, []).append(definition.name)
    return _reached(step, after)


def _reached(step: str, neighbours: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the steps to which a way leads from this one."""
    found: set[str] = set()
    to_visit = [step]
    while to_visit:
        new = set(neighbours.get(to_visit.pop(), ())) - found
        found |= new
        to_visit += new
    return found
