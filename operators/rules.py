"""What operators may ask for, when it makes sense, and what they see."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from core.agenda import AgendaRow, Kind
from core.changes import Change, Event, HistoryEntry, transition
from core.errors import RefusedError
from core.messages import Text, WakeUp
from core.orders import Direction, OrderState, Outcome, ProcessState, Snapshot, Step, StepState

AGENDA_OF = {
    ProcessState.PENDING: Kind.PENDING,
    ProcessState.PROCESSING: Kind.RUNNING,
    ProcessState.ERROR: Kind.ERROR,
}
"""Where the orders of each open state are listed. Processed ones owe nothing and are found by their id only."""


class OperatorRequest(BaseModel):
    """The body of an operator's action: who, and why. Both go into the order's history."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    operator: Annotated[Text, Field(max_length=80)]
    note: Annotated[Text, Field(max_length=1000)]


def resubmit(order: Snapshot, request: OperatorRequest, now: datetime) -> Change:
    """Let the order go on, forward or back, from the step that failed, with a fresh count (OPR-3, UND-4).

    Raises `RefusedError` for an order that is not in `Error`, or that was undone completely.
    """
    if order.state.process_state is not ProcessState.ERROR:
        raise RefusedError(f"the order is {order.state.process_state}: only one in Error can be resubmitted")
    if order.state.outcome is Outcome.UNDONE:
        raise RefusedError("the order was undone completely: there is nothing to go on with")
    failed = order.in_state(StepState.FAILED)
    after = order.with_steps(*(_afresh(step, order.state.direction) for step in failed)).with_state(
        process_state=ProcessState.PENDING,
        locked_by=None,
        complete_by=None,
        not_before=now,
        failure_count=0,
        outcome=None,
        reason=None,
    )
    entry = HistoryEntry(at=now, actor=f"operator/{request.operator}", event="resubmitted", detail=request.note)
    wake_up = WakeUp(order_id=order.order_id, steps=tuple(step.name for step in failed)).to_bus()
    return transition(order, after, entry, messages=(wake_up,))


def _afresh(step: Step, direction: Direction) -> Step:
    """Reset the failure count, but never the attempts: they tell a stale reply from a current one."""
    back = direction is Direction.UNDO
    if back and not step.undo_failed:
        return step  # it was refused on the way forward: there is nothing to undo
    state = StepState.UNDOING if back else StepState.NOT_STARTED
    return replace(step, state=state, failure_count=0, rests=0, not_before=None, complete_by=None, reason=None)


def full_view(order: Snapshot, history: Iterable[HistoryEntry]) -> dict[str, Any]:
    """Return everything about an order but personal data (OPR-1)."""
    return {
        **_state_view(order.state),
        "placedAt": order.order.placed_at.isoformat(),
        "items": [
            {"sku": item.sku, "quantity": item.quantity, "unitPrice": item.unit_price} for item in order.order.items
        ],
        "steps": [_step_view(step) for step in order.steps],
        "history": [
            {"at": entry.at.isoformat(), "actor": entry.actor, "event": entry.event, "detail": entry.detail}
            for entry in history
        ],
    }


def _state_view(state: OrderState) -> dict[str, Any]:
    return {
        "orderId": state.order_id,
        "lockedBy": state.locked_by,
        "completeBy": _iso(state.complete_by),
        "processState": state.process_state,
        "failureCount": state.failure_count,
        "direction": state.direction,
        "outcome": state.outcome,
        "reason": state.reason,
        "priority": state.priority,
        "workflow": state.workflow,
        "workflowVersion": state.workflow_version,
        "version": state.version,
        "updatedAt": state.updated_at.isoformat(),
    }


def _step_view(step: Step) -> dict[str, Any]:
    return {
        "name": step.name,
        "capability": step.capability,
        "agent": step.agent,
        "state": step.state,
        "completeBy": _iso(step.complete_by),
        "notBefore": _iso(step.not_before),
        "attempts": step.attempts,
        "failureCount": step.failure_count,
        "threshold": step.threshold,
        "policy": step.policy,
        "reason": step.reason,
        "result": step.result,
    }


def listed(row: AgendaRow) -> dict[str, Any]:
    """Return what a list shows of an order, which its agenda row holds already."""
    columns = {name[0].lower() + name[1:]: value for name, value in row.data.items()}
    return {"orderId": row.order_id, **columns}


def alert_view(alert: Event) -> Mapping[str, Any]:
    """Return an alert as it reached the operators."""
    return {
        "id": alert.event_id,
        "type": alert.type,
        "subject": alert.subject,
        "at": alert.at.isoformat(),
        **alert.data,
    }


def _iso(time: datetime | None) -> str | None:
    return time.isoformat() if time else None
