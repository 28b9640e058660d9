"""The lists of orders for operators, and the columns that their rows show."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from engine.domain import exact_json, work_index
from engine.domain.causes import Cause, Code, group_of
from engine.domain.keys import LAST, newest_first
from engine.domain.orders import OrderAggregate, WorkItem
from engine.domain.states import AtWork, AwaitingExternalEvent, UnderWay, UndoFailed
from engine.domain.statuses import OrderStatus, Outcome, ProcessState, StepState
from engine.domain.steps import Step
from engine.domain.work_index import ENDED_PREFIX, IndexRow, WorkItemKind, all_of

LISTS = {
    "Pending": WorkItemKind.PENDING,
    "Processing": WorkItemKind.RUNNING,
    "Waiting": WorkItemKind.WAITING,
    "Error": WorkItemKind.ERROR,
    "Held": WorkItemKind.HELD,
}
"""The lists of open orders. Each open order is in exactly one of them (`list_name_of`). The list of
orders that wait for an external event begins with the first deadline."""

LIST_OF = {kind: name for name, kind in LISTS.items()}
"""The name of the list for each kind of rows."""


ENDED_LISTS = {"Processed": OrderStatus.PROCESSED, "Undone": OrderStatus.UNDONE}
"""The lists of the orders that are over, newest first. A cancelled order is in the list of undone
orders."""

ENDED_LIST_OF = {status: name for name, status in ENDED_LISTS.items()}
"""The name of the list for each status of orders that are over."""

STATES = {
    "Waiting": ProcessState.PROCESSING,
    "Held": ProcessState.PENDING,
    **{
        name: ProcessState.ERROR
        for name, status in ENDED_LISTS.items()
        if status is not OrderStatus.PROCESSED
    },
}
"""The usual state of the orders in each list that is not named after a state. Orders on hold may be
in any open state."""


def state_in(list_name: str) -> ProcessState:
    return STATES.get(list_name) or ProcessState(list_name)


STATUSES = {
    "Pending": OrderStatus.PENDING,
    "Processing": OrderStatus.PROCESSING,
    "Waiting": OrderStatus.AWAITING,
    "Error": OrderStatus.FAILED,
    "Held": OrderStatus.HELD,
    **ENDED_LISTS,
}


def status_in(list_name: str) -> OrderStatus:
    return STATUSES[list_name]


TIMED_OUT = Cause(Code.TIMED_OUT, {"fault": ""})


def index_rows(order: OrderAggregate, items: Iterable[WorkItem]) -> dict[str, IndexRow]:
    """Return the rows of an order by key, with the columns that lists show."""
    shown = summary(order)
    return {item.key: _row(order, item, shown) for item in items}


def _row(order: OrderAggregate, item: WorkItem, shown: Mapping[str, Any]) -> IndexRow:
    """Return the row of a work item, with the columns that lists show of its order.

    The row of each claim has its own due time. Only the first row names the list.
    """
    data = dict(shown)
    if not item.is_first:
        del data["List"]
    if item.key.startswith(f"{WorkItemKind.PENDING}|"):
        data |= {"NotBefore": item.not_before}
    known = {name: value for name, value in data.items() if value is not None}
    return IndexRow(key=item.key, order_id=order.order_id, data=known)


def of_list(
    name: str, since: datetime | None = None, until: datetime | None = None
) -> tuple[str, str]:
    """Return the row-key range [from, to) of a list.

    A list of orders that are over is sorted by time, newest first.
    """
    if name in LISTS:
        return all_of(LISTS[name])
    place = f"{ENDED_PREFIX}{ENDED_LISTS[name]}|"
    start = f"{newest_first(until)}{LAST}" if until else ""
    end = f"{newest_first(since)}|" if since else ""
    return f"{place}{start}", f"{place}{end}{LAST}"


def list_name_of(order: OrderAggregate) -> str:
    """Return the name of the only list that has the order (OPR-1)."""
    kind = work_index.list_of(order)
    return ENDED_LIST_OF[order.status] if kind is WorkItemKind.ENDED else LIST_OF[kind]


def is_first(row: IndexRow) -> bool:
    """Return whether this is the row that lists its order. Lists skip the further claims.

    A row that cannot be read is listed too.
    """
    return "List" in row.data or bool(row.fault)


def summary(order: OrderAggregate) -> dict[str, Any]:
    """Return the columns that lists show of the order. Columns without a value are left out."""
    failed = tuple(step for step in order.steps if step.pattern_state is StepState.FAILED)
    if order.outcome is Outcome.UNDO_INCOMPLETE:  # it waits for those whose undo failed
        failed = order.in_state(UndoFailed) or failed
    known = {
        "List": list_name_of(order),
        "Situation": str(order.status),
        "ProcessState": str(order.process_state),
        "FailureCount": order.failures,
        "Priority": str(order.priority),
        "ReadySince": order.derived.ready_since,
        "NotBefore": order.derived.not_before,
        "DueBy": order.deadline and order.deadline.due_by,
        "Workflow": order.workflow,
        "WorkflowVersion": order.workflow_version,
        **(_current(order) if not order.has_ended else {}),
        "Agents": " ".join(step.agent for step in order.in_state(AtWork)) or None,
        "WaitsFor": " ".join(step.name for step in order.in_state(AwaitingExternalEvent)) or None,
        "Outcome": order.outcome and str(order.outcome),
        "FailedSteps": " ".join(step.name for step in failed) or None,
        "FailedAgents": " ".join(step.agent for step in failed) or None,
        "Cause": order.cause and group_of(order.cause),
        "Reason": _text(_reason(order)),
        "UpdatedAt": order.updated_at,
    }
    # A table stores no nulls.
    return {name: value for name, value in known.items() if value is not None}


def _reason(order: OrderAggregate) -> Cause | None:
    """Return the cause of the order's state.

    For an order on hold, it names the operator and the note.
    """
    if order.hold:
        return Cause(Code.HELD, {"by": order.hold.by, "note": order.hold.note})
    return order.cause


def _text(cause: Cause | None) -> str | None:
    return exact_json.write(cause.as_json()) if cause else None


def _current(order: OrderAggregate) -> dict[str, Any]:
    """Return the columns of the current step of an open order: the step with the most failures."""
    under_way: tuple[Step, ...] = order.in_state(UnderWay)
    at = max((*under_way, *order.ready), key=lambda step: step.counts.failures, default=None)
    if at is None:
        return {}
    # An attempt that runs has no cause; of those before it, timeouts alone are counted.
    last = at.cause or (TIMED_OUT if at.counts.failures else None)
    return {
        "Step": at.name,
        "Attempt": at.counts.failures + 1,
        "Threshold": at.rules.threshold,
        "LastAnswer": _text(last),
        "CompleteBy": at.complete_by,
    }
