"""Which steps of an order are next, by its workflow, without the shipped code."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from engine.declarations.workflow import WorkflowDefinition, Workflows
from engine.domain.deadlines import DeadlineState
from engine.domain.orders import OrderAggregate, Pending, Processing
from engine.domain.states import (
    AwaitingExternalEvent,
    Completed,
    Failed,
    NothingToUndo,
    RequestCancelled,
    Running,
    Skipped,
    Startable,
    UndoFailed,
    Undoing,
    UndoPending,
)
from engine.domain.steps import Step

NOT_STARTED = Startable | RequestCancelled
"""No attempt to do the step is running, and it has no result."""
BEING_DONE = Running | AwaitingExternalEvent
FAILED = Failed | UndoFailed | NothingToUndo
"""The states of a step without further attempts, to do or to undo it."""


def ready(order: OrderAggregate, workflows: Workflows) -> list[Step]:
    """Return the next steps, whether or not their time has come."""
    if order.hold:
        return []
    workflow = workflows.find(order.workflow, order.workflow_version)
    if workflow is None:  # of another version
        workflow = next(version for version in workflows.all if version.name == order.workflow)
    if order.is_undo:
        return _ready_to_be_undone(order, workflow)
    if stops(order):
        return []
    by_name = {step.name: step for step in order.steps}
    over = {name for name, step in by_name.items() if isinstance(step.state, Completed | Skipped)}
    first = [
        by_name[definition.name]
        for definition in workflow.steps
        if over >= before(workflow, definition.name)
    ]
    return [step for step in first if isinstance(step.state, NOT_STARTED)]


def is_late(order: OrderAggregate) -> bool:
    """Whether the deadline has passed, and the order starts nothing more (SCH-17)."""
    deadline = order.deadline
    return deadline is not None and deadline.state is DeadlineState.PASSED and not order.is_undo


def stops(order: OrderAggregate) -> bool:
    """Whether no more steps of the order are done, because a step has failed or it is late."""
    return not order.is_undo and (order.has_any(Failed) or is_late(order))


def next_check(order: OrderAggregate) -> datetime | None:
    """Return when the deadline of an order has to be checked. None if never."""
    deadline = order.deadline
    if deadline is None or order.is_undo or not isinstance(order.state, Pending | Processing):
        return None
    times = {
        DeadlineState.OPEN: deadline.due_soon_at,
        DeadlineState.WARNED: deadline.due_by,
    }
    return times.get(deadline.state)


def _ready_to_be_undone(order: OrderAggregate, workflow: WorkflowDefinition) -> list[Step]:
    if order.has_any(Running, AwaitingExternalEvent):
        return []
    standing = {
        step.name
        for step in order.steps
        if isinstance(step.state, UndoPending | Undoing | UndoFailed)
    }
    return [
        step
        for step in order.in_state(UndoPending)
        if not standing & dependents(workflow, step.name)
    ]


def before(workflow: WorkflowDefinition, step: str) -> set[str]:
    """Return the steps before this one, directly or indirectly.

    An external event may come early, so all of them have to be done.
    """
    return _reached(step, {definition.name: definition.after for definition in workflow.steps})


def dependents(workflow: WorkflowDefinition, step: str) -> set[str]:
    """Return the steps after this one, directly or indirectly, by the workflow itself."""
    after: dict[str, list[str]] = {}
    for definition in workflow.steps:
        for name in definition.after:
            after.setdefault(name, []).append(definition.name)
    return _reached(step, after)


def _reached(step: str, neighbours: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the steps that can be reached from this one."""
    found: set[str] = set()
    to_visit = [step]
    while to_visit:
        new = set(neighbours.get(to_visit.pop(), ())) - found
        found |= new
        to_visit += new
    return found
