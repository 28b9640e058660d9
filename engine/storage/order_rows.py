"""Converts the record of an order to the columns of its state row, and back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic import AwareDatetime

from engine.domain.causes import Cause
from engine.domain.deadlines import Deadline, DeadlineState, WhenLate
from engine.domain.orders import (
    PROCESS_STATE,
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
from engine.domain.statuses import Direction, Outcome, ProcessState
from engine.domain.steps import Step
from engine.domain.submitted_order import Order, Priority
from engine.storage.step_rows import columns_of_steps, result_column, steps_in
from engine.storage.tables import Columns, RowMapper

FORMER = (
    "it has no column Rules, so an earlier version of the app wrote it: use that version, or empty"
    " the store (of a local run with `make clean`)"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class StateColumns:
    """The columns of a state row, except those of its steps."""

    order_id: str
    """The id of the order."""
    workflow: str
    """The name of the workflow."""
    workflow_version: int
    """The version of the workflow that the order follows."""
    process_state: ProcessState
    """The state of the order: `Pending`, `Processing`, `Processed` or `Error`."""
    claimed_by: str | None = None
    """The scheduler that started the last attempt; absent unless the order is `Processing`."""
    outcome: Outcome | None = None
    """The outcome of an order in `Error`: `failed`, `undone` or `undo-incomplete`; absent in other
    states."""
    locked_by: str | None = None
    """The scheduler that handles the order; absent while no agent has a request."""
    complete_by: AwareDatetime | None = None
    """The earliest complete-by time of the running steps.

    In a pending order, it is the latest `RetryBy` of the steps.
    """
    failure_count: int
    """The number of time-outs that counted as failures since the last resubmit, skip, settle or
    retry with a new key.

    Time-outs that the supervisor finds together count once.
    """
    version: int
    """The number of the last transition."""
    priority: Priority
    """The priority: `high` or `normal`."""
    due_by: AwareDatetime | None = None
    """The deadline of the order; absent if it has none."""
    due_soon_at: AwareDatetime | None = None
    """The time at which operators are warned of the deadline (ALR-6)."""
    when_late: WhenLate | None = None
    """The rule for an order that is late: `alert`, `undo` or `stop`."""
    deadline_state: DeadlineState | None = None
    """The state of the deadline: `warned`, `passed` or `lifted`, which means that it no longer
    counts (SCH-17). Absent before the warning."""
    ready_since: AwareDatetime
    """The time by which the order is sorted in its lane. Its age in the queue counts from it."""
    not_before: AwareDatetime | None = None
    """The earliest start of a ready step, if no ready step may start now."""
    updated_at: AwareDatetime
    """The time of the last transition."""
    direction: Direction
    """`forward` while steps are done, `undo` while they are undone."""
    cause: Cause | None = None
    """Why the order is in its state: a code with facts, as JSON."""
    held_by: str | None = None
    """The operator who holds the order."""
    held_because: str | None = None
    """The operator's note about the hold."""
    held_since: AwareDatetime | None = None
    """The time at which the hold began."""
    reply_to: str | None = None
    """The sender's queue for notifications; absent if the sender named none."""
    work_items: tuple[str, ...]
    """The row keys of the order's work items.

    They are stored because another version of the app may derive other keys.
    """
    more: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """Columns that a newer version of the app has added. They are written back unchanged (FLT-12).
    """


@dataclass(frozen=True, slots=True)
class StateRecord:
    """The changeable part of an order, in one row under one ETag: its state and its steps."""

    state: StateColumns
    steps: tuple[Step, ...]


STATE = RowMapper(StateColumns, texts=("cause", "work_items"), order_id="OrderID")

# Between the order and its state record


def state_record(order: OrderAggregate) -> StateRecord:
    state, hold, derived = order.state, order.hold, order.derived
    deadline = order.deadline
    has_changed = deadline and deadline.state is not DeadlineState.OPEN
    columns = StateColumns(
        order_id=order.order_id,
        workflow=order.workflow,
        workflow_version=order.workflow_version,
        process_state=PROCESS_STATE[type(state)],
        claimed_by=(state.instance or None) if isinstance(state, Processing) else None,
        outcome=state.outcome if isinstance(state, InError) else None,
        locked_by=derived.locked_by,
        complete_by=derived.complete_by,
        failure_count=order.failures,
        version=order.version,
        priority=order.priority,
        due_by=deadline.due_by if deadline else None,
        due_soon_at=deadline.due_soon_at if deadline else None,
        when_late=deadline.when_late if deadline else None,
        deadline_state=deadline.state if deadline and has_changed else None,
        ready_since=derived.ready_since,
        not_before=derived.not_before,
        updated_at=order.updated_at,
        direction=order.direction,
        cause=order.cause,
        held_by=hold.by if hold else None,
        held_because=hold.note if hold else None,
        held_since=hold.since if hold else None,
        reply_to=order.reply_to,
        work_items=tuple(item.key for item in derived.work_items),
        more=order.unknown,
    )
    return StateRecord(columns, order.steps)


def order_of(submitted: Order, record: StateRecord, etag: str | None) -> OrderAggregate:
    """Make the order from its two records. `etag` is the ETag of the state row."""
    state = record.state
    derived = Derived(
        complete_by=state.complete_by,
        locked_by=state.locked_by,
        not_before=state.not_before,
        ready_since=state.ready_since,
        work_items=tuple(WorkItem(key=key) for key in state.work_items),
    )
    return OrderAggregate(
        submitted=submitted,
        workflow=state.workflow,
        workflow_version=state.workflow_version,
        reply_to=state.reply_to,
        priority=state.priority,
        deadline=_deadline(state),
        direction=state.direction,
        state=_order_state(state),
        cause=state.cause,
        hold=_hold(state),
        failures=state.failure_count,
        steps=record.steps,
        version=state.version,
        updated_at=state.updated_at,
        derived=derived,
        etag=etag,
        unknown=state.more,
    )


def _order_state(state: StateColumns) -> OrderState:
    match state.process_state, state.outcome:
        case ProcessState.PENDING, None:
            return Pending()
        case ProcessState.PROCESSING, None:
            return Processing(state.claimed_by or "")
        case ProcessState.PROCESSED, None:
            return Processed()
        case ProcessState.ERROR, Outcome() as outcome:
            return InError(outcome)
    raise ValueError(f"ProcessState {state.process_state} with Outcome {state.outcome}")


def _hold(state: StateColumns) -> Hold | None:
    match state.held_by, state.held_because, state.held_since:
        case None, None, None:
            return None
        case str(by), str(note), datetime() as since:
            return Hold(by, note, since)
    raise ValueError("HeldBy, HeldBecause, HeldSince: expected all or none")


def _deadline(state: StateColumns) -> Deadline | None:
    match state.due_by, state.due_soon_at, state.when_late:
        case None, None, None:
            return None
        case datetime() as due_by, datetime() as due_soon_at, WhenLate() as when_late:
            return Deadline(
                due_by=due_by,
                due_soon_at=due_soon_at,
                when_late=when_late,
                state=state.deadline_state or DeadlineState.OPEN,
            )
    raise ValueError("DueBy, DueSoonAt, WhenLate: expected all or none")


# Between the state record and its columns


def columns_of_state(record: StateRecord) -> Columns:
    return {**STATE.columns(record.state), **columns_of_steps(record.steps)}


def state_in(columns: Columns) -> StateRecord:
    """Read the record of a state row.

    Raises ValueError, LookupError or TypeError unless all of it can be read, so an order is never
    read in part.
    """
    if "Rules" not in columns:
        raise ValueError(FORMER)
    steps = steps_in(columns)
    of_steps = {"Steps", "Rules", *map(result_column, range(len(steps)))}
    state = STATE.record({name: value for name, value in columns.items() if name not in of_steps})
    _order_state(state)
    _hold(state)
    _deadline(state)
    return StateRecord(state, steps)
