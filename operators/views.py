"""What operators see, as it goes over the wire. Nothing here shows personal data."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, WithJsonSchema
from pydantic.alias_generators import to_camel

from core.agenda import AgendaRow
from core.business import Payload
from core.changes import HistoryEntry
from core.orders import Direction, OnFailure, Outcome, Priority, ProcessState, Snapshot, StepState

Time = Annotated[
    datetime,
    PlainSerializer(datetime.isoformat, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}, mode="serialization"),
]


class View(BaseModel):
    """Base of all answers: camelCase on the wire, and nothing that is not declared."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, from_attributes=True
    )


class StepView(View):
    """One step of an order."""

    name: str
    capability: str
    agent: str
    after: list[str]
    """The steps that have to be done before."""
    state: StepState
    complete_by: Time | None
    not_before: Time | None
    attempts: int
    failure_count: int
    threshold: int
    policy: Annotated[OnFailure, Field(validation_alias="on_failure")]
    rests: Annotated[int, Field(validation_alias="cooldowns")]
    undoable: bool
    reason: str | None
    result: dict[str, Any] | None


class EntryView(View):
    """One line of an order's history."""

    at: Time
    actor: str
    event: str
    detail: str


class StateView(View):
    """The state record, with the documented properties first."""

    order_id: str
    locked_by: str | None
    complete_by: Time | None
    process_state: ProcessState
    failure_count: int
    direction: Direction
    outcome: Outcome | None
    reason: str | None
    priority: Priority
    workflow: str
    workflow_version: int
    version: int
    not_before: Time
    updated_at: Time


class OrderView(StateView):
    """Everything about one order but who the customer is (OPR-1)."""

    placed_at: Time
    payload: dict[str, Any]
    """What was submitted, without personal data."""
    steps: list[StepView]
    history: list[EntryView]
    actions: list[str]
    """What an operator can do with the order as it is."""


def order_view(order: Snapshot, payload: Payload, history: Iterable[HistoryEntry], actions: Iterable[str]) -> OrderView:
    """Return everything about an order but personal data (OPR-1)."""
    return OrderView(
        **dict(StateView.model_validate(order.state)),
        placed_at=order.order.placed_at,
        payload=dict(payload.erased(order.order.payload)),
        steps=[StepView.model_validate(step) for step in order.steps],
        history=[EntryView.model_validate(entry) for entry in history],
        actions=list(actions),
    )


class ListedOrder(View):
    """What a list shows of an order, which its agenda row holds already."""

    order_id: str
    process_state: ProcessState
    failure_count: int
    priority: Priority
    workflow: str
    outcome: Outcome | None
    failed_steps: list[str]
    reason: str | None
    updated_at: Time | None
    """Null if its row cannot be read."""


def listed(row: AgendaRow, state: ProcessState) -> ListedOrder:
    """Return what the list of orders in this state shows of an order; if its row cannot be read, that."""
    try:
        return _listed(row)
    except (LookupError, ValueError, TypeError) as fault:
        return ListedOrder(
            order_id=row.order_id,
            process_state=state,
            failure_count=0,
            priority=Priority.NORMAL,
            workflow="unknown",
            outcome=None,
            failed_steps=[],
            reason=f"row {row.key} cannot be read: {row.fault or type(fault).__name__}",
            updated_at=None,
        )


def _listed(row: AgendaRow) -> ListedOrder:
    data = row.data
    return ListedOrder(
        order_id=row.order_id,
        process_state=data["ProcessState"],
        failure_count=data["FailureCount"],
        priority=data["Priority"],
        workflow=data["Workflow"],
        outcome=data.get("Outcome"),
        failed_steps=str(data.get("FailedSteps", "")).split(),
        reason=data.get("Reason"),
        updated_at=data["UpdatedAt"],
    )


class OrderList(View):
    """One page of orders, the longest waiting first."""

    orders: list[ListedOrder]
    continuation: str | None = None
    """Where the next page begins; null on the last one."""


class FoundOrder(View):
    """An order that was looked for by its id, in whatever state."""

    order_id: str
    process_state: ProcessState
    outcome: Outcome | None
    reason: str | None
    workflow: str
    updated_at: Time


class FoundOrders(View):
    """The orders whose ids begin so, the oldest first."""

    orders: list[FoundOrder]
    unreadable: list[str]
    """Those of them that nobody can read: *explain* says why."""
    more: bool
    """Whether there are more: give more of the id."""


class Acted(View):
    """What was done to an order."""

    order_id: str
    status: str
