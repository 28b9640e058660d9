"""Orders in each of their states, with their steps.

Each function takes an order, or makes one, and returns it as it is in that state. What follows from
the steps (who locks it, its complete-by time, when it may go on) is worked out here, so that no
test sets it by hand. Where no step accounts for the state, the order's steps are moved there too:
those of a processed order are completed, and of one that failed, one step has failed.

No function names a field of the record, so a test that uses them survives a change of the record.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any, TypedDict, Unpack

from bench.workflows import MEASURED
from core.life import DONE, Direction, Outcome, ProcessState, StepState
from core.orders import Order, OrderState, Priority, Snapshot, Step
from core.workflow import Workflow
from engine.conversion.records import old_step
from engine.domain.causes import Cause

from . import steps as make
from .changes import index_rows, withdrawn
from .values import CONTENT, COOLDOWN, NOW, ORDER_ID, THRESHOLD, TIMEOUT


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

CALLED = {"ready_since": "waits_since", "failures": "failure_count"}
"""Today's names of some details."""


def new(steps: Iterable[Step] | None = None, **details: Unpack[Details]) -> Snapshot:
    """Return an order as submission records it.

    Its steps are those of its workflow, if that is known, unless they are given.
    """
    recorded = OrderState(
        order_id=ORDER_ID,
        workflow="payment-only",
        workflow_version=1,
        waits_since=NOW,
        updated_at=NOW,
    )
    order = Order(order_id=ORDER_ID, placed_at=NOW, payload=CONTENT, submission_digest="")
    if "workflow" in details and "workflow_version" not in details:
        latest = MEASURED.workflows.latest(details["workflow"])
        details["workflow_version"] = latest.version if latest else 1
    blank = _detailed(Snapshot(order=order, state=recorded, steps=(make.PAYMENT,)), details)
    if steps is None:
        steps = _initial_steps(blank.state.workflow, blank.state.workflow_version)
    return _derived(_stepped(blank, steps), since="ready_since" not in details)


def on(workflow: Workflow, /, **details: Unpack[Details]) -> Snapshot:
    """Return an order on this workflow, which need not be one of the app, as it is recorded."""
    steps = _steps_of(workflow)
    details.setdefault("workflow", workflow.name)
    details.setdefault("workflow_version", workflow.version)
    return new(steps, **details)


def having(
    order: Snapshot, *, steps: Iterable[Step] | None = None, **details: Unpack[Details]
) -> Snapshot:
    """Return the order with these details, and with these steps instead of its own if given."""
    return _derived(_stepped(_detailed(order, details), steps), since=False)


def recorded(order: Snapshot) -> Snapshot:
    """Return the order as it is loaded: with the keys of its rows in the work index."""
    return order.with_state(agenda=tuple(index_rows(order)))


def with_steps(order: Snapshot, *steps: Step) -> Snapshot:
    """Return the order in which these steps replace those of the same name."""
    return _derived(order.with_steps(*steps))


def pending(
    order: Snapshot | None = None,
    *,
    steps: Iterable[Step] | None = None,
    **details: Unpack[Details],
) -> Snapshot:
    """Return an order that a scheduler may claim, or that waits until one may."""
    order = _made(order, steps, details)
    return _state(order, details, process_state=ProcessState.PENDING)


def processing(
    order: Snapshot | None = None,
    *,
    by: str = "s1",
    steps: Iterable[Step] | None = None,
    **details: Unpack[Details],
) -> Snapshot:
    """Return an order that this scheduler handles; its ready steps run if none does.

    Nobody locks it while it only waits for an external answer (ANS-1).
    """
    order = _made(order, steps, details)
    if not order.running():
        undo = order.state.direction is Direction.UNDO
        start = make.undoing if undo else make.running
        order = order.with_steps(*(start(step) for step in order.ready()))
    return _state(order, details, process_state=ProcessState.PROCESSING, locked_by=by)


def processed(
    order: Snapshot | None = None,
    *,
    steps: Iterable[Step] | None = None,
    **details: Unpack[Details],
) -> Snapshot:
    """Return an order that is done; its steps are completed, unless they are skipped."""
    order = _made(order, steps, details)
    completed = (make.completed(step) for step in order.steps if step.state not in DONE)
    return _state(order.with_steps(*completed), details, process_state=ProcessState.PROCESSED)


def in_error(
    order: Snapshot | None = None,
    *,
    outcome: Outcome = Outcome.FAILED,
    reason: Cause | str | None = None,
    steps: Iterable[Step] | None = None,
    **details: Unpack[Details],
) -> Snapshot:
    """Return an order that has ended in `Error`, by default for the reason of the failed step.

    If no step accounts for the outcome, the first that can does.
    """
    order = withdrawn(_made(order, steps, details))
    order = order.with_steps(*_ended_as(order, outcome, reason or "declined"))
    cause = next((step.cause for step in order.in_state(StepState.FAILED)), order.state.cause)
    direction = Direction.FORWARD if outcome is Outcome.FAILED else Direction.UNDO
    return _state(
        order,
        details,
        process_state=ProcessState.ERROR,
        outcome=outcome,
        cause=make.cause_of(reason) or cause,
        direction=direction,
    )


def undoing(
    order: Snapshot | None = None,
    *,
    steps: Iterable[Step] | None = None,
    **details: Unpack[Details],
) -> Snapshot:
    """Return an order that is being undone; its state and its steps stay as they are."""
    order = _made(order, steps, details)
    return _derived(order.with_state(direction=Direction.UNDO), since="ready_since" not in details)


def on_hold(
    order: Snapshot | None = None,
    *,
    by: str = "grace",
    because: str = "a note",
    since: datetime = NOW,
) -> Snapshot:
    """Return an order of which no step starts until an operator releases it (OPR-7)."""
    order = order or new()
    return _derived(order.with_state(held_by=by, held_because=because, held_since=since))


# What they share


@cache
def _initial_steps(workflow: str, version: int) -> tuple[Step, ...] | None:
    known = MEASURED.workflows.find(workflow, version)
    if known is None:
        return None
    return _steps_of(known)


def _steps_of(workflow: Workflow) -> tuple[Step, ...]:
    steps = workflow.initial_steps(timeout=TIMEOUT, threshold=THRESHOLD, cooldown=COOLDOWN)
    return tuple(map(old_step, steps))


def _made(order: Snapshot | None, steps: Iterable[Step] | None, details: Details) -> Snapshot:
    if order is None:
        return new(steps, **details)
    return _stepped(_detailed(order, details), steps)


def _stepped(order: Snapshot, steps: Iterable[Step] | None) -> Snapshot:
    return order if steps is None else replace(order, steps=tuple(steps))


def _detailed(order: Snapshot, details: Details) -> Snapshot:
    """Return the order with these details, each in the record that keeps it."""
    given = dict[str, Any](details)
    submitted = {name: given.pop(name) for name in SUBMITTED if name in given}
    if "order_id" in given:
        submitted["order_id"] = given["order_id"]
    state = {CALLED.get(name, name): value for name, value in given.items()}
    return replace(
        order, order=replace(order.order, **submitted), state=replace(order.state, **state)
    )


def _state(order: Snapshot, details: Details, **state: Any) -> Snapshot:
    outcome = {"outcome": None, **state}
    return _derived(order.with_state(**outcome), since="ready_since" not in details)


def _derived(order: Snapshot, *, since: bool = True) -> Snapshot:
    """Return the order with what follows from its steps, as a transition derives it.

    `since`: the time since which it waits follows too, and was not chosen by the test.
    """
    state = order.state
    not_before = order.chosen_time(state.updated_at)
    follows: dict[str, Any] = {"not_before": not_before}
    match state.process_state:
        case ProcessState.PROCESSING:
            follows["locked_by"] = state.locked_by if order.at_work() else None
            follows["complete_by"] = order.earliest_complete_by()
        case ProcessState.PENDING:
            follows |= {"locked_by": None, "complete_by": order.latest_retry_by()}
        case _:
            follows |= {"locked_by": None, "complete_by": None}
    after = order.with_state(**follows)
    if since and not_before and not after.is_pausing:
        return after.with_state(waits_since=not_before)
    return after


def _ended_as(order: Snapshot, outcome: Outcome, reason: Cause | str) -> Iterable[Step]:
    """Return the steps that have to change so that the order can have ended so."""
    if outcome is Outcome.UNDONE:
        return [make.undone(step) for step in order.steps if step.undoable and step.attempts]
    if outcome is Outcome.UNDO_INCOMPLETE:
        if any(step.undo_failed for step in order.steps):
            return []
        return [make.undo_failed(step, reason=reason) for step in order.steps if step.undoable][:1]
    if order.in_state(StepState.FAILED):
        return []
    return [make.failed(step, reason=reason) for step in order.steps if step.state not in DONE][:1]
