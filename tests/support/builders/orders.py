"""Orders in each of their states, with their steps.

Each function takes an order, or makes one, and returns it as it is in that state. What follows from
the steps (who locks it, its complete-by time, when it may go on) is worked out here, so that no
test sets it by hand. Where no step accounts for the state, the order's steps are moved there too:
those of a processed order are completed, and of one that failed, one step has failed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any, TypedDict, Unpack

from bench.workflows import MEASURED
from engine.declarations.workflow import WorkflowDefinition
from engine.domain import work_index
from engine.domain.causes import Cause
from engine.domain.derive import derive
from engine.domain.effects import NotDone, Sent
from engine.domain.orders import (
    Derived,
    Hold,
    InError,
    OrderAggregate,
    OrderState,
    Pending,
    Processed,
    Processing,
    WorkItem,
)
from engine.domain.states import Failed, Finished, NothingToUndo, UnderWay, UndoFailed
from engine.domain.statuses import Direction, Outcome, StepState
from engine.domain.steps import Step
from engine.domain.submitted_order import Order, Priority

from . import steps as make
from .changes import index_rows, withdrawn
from .values import CONTENT, DEFAULTS, NOW, ORDER_ID


class Details(TypedDict, total=False):
    """What is known of an order besides its state."""

    order_id: str
    payload: Mapping[str, Any]
    placed_at: datetime
    not_before: datetime
    """The time before which none of its steps begins, as it was submitted (SUB-9)."""
    key_rows: tuple[str, ...]
    workflow: str
    workflow_version: int
    version: int
    priority: Priority
    ready_since: datetime
    updated_at: datetime
    failures: int
    reply_to: str


SUBMITTED = ("payload", "placed_at", "not_before", "key_rows")
"""The details that never change once the order was submitted."""


def new(steps: Iterable[Step] | None = None, **details: Unpack[Details]) -> OrderAggregate:
    """Return an order as submission records it.

    Its steps are those of its workflow, if that is known, unless they are given.
    """
    submitted = Order(order_id=ORDER_ID, placed_at=NOW, payload=CONTENT, submission_digest="")
    blank = OrderAggregate(
        submitted=submitted,
        workflow="payment-only",
        workflow_version=1,
        updated_at=NOW,
        derived=Derived(ready_since=NOW),
        steps=(make.PAYMENT,),
    )
    if "workflow" in details and "workflow_version" not in details:
        latest = MEASURED.workflows.latest(details["workflow"])
        details["workflow_version"] = latest.version if latest else 1
    blank = _detailed(blank, details)
    if steps is None:
        steps = _initial_steps(blank.workflow, blank.workflow_version)
    return _derived(_stepped(blank, steps), since="ready_since" not in details)


def on(workflow: WorkflowDefinition, /, **details: Unpack[Details]) -> OrderAggregate:
    """Return an order on this workflow, which need not be one of the app, as it is recorded."""
    steps = _steps_of(workflow)
    details.setdefault("workflow", workflow.name)
    details.setdefault("workflow_version", workflow.version)
    return new(steps, **details)


def having(
    order: OrderAggregate, *, steps: Iterable[Step] | None = None, **details: Unpack[Details]
) -> OrderAggregate:
    """Return the order with these details, and with these steps instead of its own if given."""
    return _derived(_stepped(_detailed(order, details), steps), since=False)


def recorded(order: OrderAggregate) -> OrderAggregate:
    """Return the order as it is loaded: with the keys of its rows in the work index."""
    items = tuple(WorkItem(key=key) for key in index_rows(order))
    return replace(order, derived=replace(order.derived, work_items=items))


def with_steps(order: OrderAggregate, *steps: Step) -> OrderAggregate:
    """Return the order in which these steps replace those of the same name."""
    return _derived(order.with_steps(*steps))


def pending(
    order: OrderAggregate | None = None,
    *,
    steps: Iterable[Step] | None = None,
    **details: Unpack[Details],
) -> OrderAggregate:
    """Return an order that a scheduler may claim, or that waits until one may."""
    order = _made(order, steps, details)
    return _state(order, details, Pending())


def processing(
    order: OrderAggregate | None = None,
    *,
    by: str = "s1",
    steps: Iterable[Step] | None = None,
    **details: Unpack[Details],
) -> OrderAggregate:
    """Return an order that this scheduler handles; its ready steps run if none does.

    Nobody locks it while it only waits for an external answer (ANS-1).
    """
    order = _made(order, steps, details)
    if not order.has_any(UnderWay):
        start = make.undoing if order.is_undo else make.running
        order = order.with_steps(*(start(step) for step in order.ready))
    return _state(order, details, Processing(by))


def processed(
    order: OrderAggregate | None = None,
    *,
    steps: Iterable[Step] | None = None,
    **details: Unpack[Details],
) -> OrderAggregate:
    """Return an order that is done; its steps are completed, unless they are skipped."""
    order = _made(order, steps, details)
    completed = map(make.completed, _unfinished(order))
    return _state(order.with_steps(*completed), details, Processed())


def in_error(
    order: OrderAggregate | None = None,
    *,
    outcome: Outcome = Outcome.FAILED,
    reason: Cause | str | None = None,
    steps: Iterable[Step] | None = None,
    **details: Unpack[Details],
) -> OrderAggregate:
    """Return an order that has ended in `Error`, by default for the reason of the failed step.

    If no step accounts for the outcome, the first that can does.
    """
    order = withdrawn(_made(order, steps, details))
    order = order.with_steps(*_ended_as(order, outcome, reason or "declined"))
    failed = (step.cause for step in order.steps if step.pattern_state is StepState.FAILED)
    cause = make.cause_of(reason) or next(failed, order.cause)
    direction = Direction.FORWARD if outcome is Outcome.FAILED else Direction.UNDO
    ended = replace(order, cause=cause, direction=direction)
    return _state(ended, details, InError(outcome))


def undoing(
    order: OrderAggregate | None = None,
    *,
    steps: Iterable[Step] | None = None,
    **details: Unpack[Details],
) -> OrderAggregate:
    """Return an order that is being undone; its state and its steps stay as they are."""
    order = _made(order, steps, details)
    undone = replace(order, direction=Direction.UNDO)
    return _derived(undone, since="ready_since" not in details)


def on_hold(
    order: OrderAggregate | None = None,
    *,
    by: str = "grace",
    because: str = "a note",
    since: datetime = NOW,
) -> OrderAggregate:
    """Return an order of which no step starts until an operator releases it (OPR-7)."""
    order = order or new()
    return _derived(order.put_on_hold(Hold(by, because, since)))


# What they share


@cache
def _initial_steps(workflow: str, version: int) -> tuple[Step, ...] | None:
    known = MEASURED.workflows.find(workflow, version)
    if known is None:
        return None
    return _steps_of(known)


def _steps_of(workflow: WorkflowDefinition) -> tuple[Step, ...]:
    return workflow.initial_steps(DEFAULTS)


def _made(
    order: OrderAggregate | None, steps: Iterable[Step] | None, details: Details
) -> OrderAggregate:
    if order is None:
        return new(steps, **details)
    return _stepped(_detailed(order, details), steps)


def _stepped(order: OrderAggregate, steps: Iterable[Step] | None) -> OrderAggregate:
    return order if steps is None else replace(order, steps=tuple(steps))


def _detailed(order: OrderAggregate, details: Details) -> OrderAggregate:
    """Return the order with these details, each in the record that keeps it."""
    given = dict[str, Any](details)
    submitted = {name: given.pop(name) for name in SUBMITTED if name in given}
    if "order_id" in given:
        submitted["order_id"] = given["order_id"]
    derived = {name: given.pop(name) for name in ("ready_since",) if name in given}
    given.pop("order_id", None)
    return replace(
        order,
        submitted=replace(order.submitted, **submitted),
        derived=replace(order.derived, **derived),
        **given,
    )


def _state(order: OrderAggregate, details: Details, state: OrderState) -> OrderAggregate:
    return _derived(replace(order, state=state), since="ready_since" not in details)


def _derived(order: OrderAggregate, *, since: bool = True) -> OrderAggregate:
    """Return the order with what follows from its steps, as a transition derives it.

    `since`: the time since which it waits follows too, and was not chosen by the test.
    """
    if order.is_undo:
        order = order.with_steps(*map(_failed_on_the_way_back, order.in_state(Failed)))
    now, kept = order.updated_at, order.derived.ready_since
    follows = derive(order, order, now)
    not_before = follows.not_before
    is_chosen = not_before and not work_index.is_pause(order, order.ready, not_before)
    ready_since = not_before if since and not_before and is_chosen else kept
    items = tuple(work_index.work_items(order, now, ready_since))
    return replace(order, derived=replace(follows, ready_since=ready_since, work_items=items))


def _failed_on_the_way_back(step: Step) -> Step:
    """Return a failed step of an order that is undone: what failed is its undo, if it has one."""
    effect, state = step.effect, step.state
    if not step.rules.undoable or not isinstance(effect, Sent) or not isinstance(state, Failed):
        return step
    kind = NothingToUndo if isinstance(effect, NotDone) else UndoFailed
    return replace(step, state=kind(state.cause, state.operator_decides))


def _unfinished(order: OrderAggregate) -> list[Step]:
    return [step for step in order.steps if not isinstance(step.state, Finished)]


def _ended_as(order: OrderAggregate, outcome: Outcome, reason: Cause | str) -> Iterable[Step]:
    """Return the steps that have to change so that the order can have ended so."""
    undoable = [step for step in order.steps if step.rules.undoable]
    if outcome is Outcome.UNDONE:
        return [make.undone(step) for step in undoable if step.counts.attempts]
    if outcome is Outcome.UNDO_INCOMPLETE:
        failed = map(_failed_on_the_way_back, order.steps)
        if any(isinstance(step.state, UndoFailed) for step in failed):
            return []
        return [make.undo_failed(step, reason=reason) for step in undoable][:1]
    if any(step.pattern_state is StepState.FAILED for step in order.steps):
        return []
    return [make.failed(step, reason=reason) for step in _unfinished(order)][:1]
