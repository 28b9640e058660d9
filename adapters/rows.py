"""The rows of table `orders`: how records become entities and come back."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from adapters.writes import Record, aware, json_text
from core.agenda import AgendaRow
from core.changes import HistoryEntry
from core.errors import InvalidError, UnreadableRowError
from core.keys import order_in
from core.orders import Direction, Item, Order, OrderState, Outcome, Policy, Priority, ProcessState, Step, StepState

SCHEMA_VERSION = 1
MOST_CHARACTERS = 32 * 1024
"""What one property can hold: 64 KiB of UTF-16."""

KEYS = {"PartitionKey", "RowKey", "SchemaVersion"}

Columns = Mapping[str, Any]


class UnknownSchemaError(UnreadableRowError):
    """The row was written by a later version of the app."""


def entity(partition: str, key: str, columns: Columns) -> dict[str, Any]:
    """Return the entity; None becomes an absent property. Raises for a naive time or a text over 64 KiB."""
    values = {name: _stored(name, value) for name, value in columns.items() if value is not None}
    return {"PartitionKey": partition, "RowKey": key, "SchemaVersion": SCHEMA_VERSION, **values}


def columns_of(stored: Columns) -> dict[str, Any]:
    """Return the columns of an entity without its keys; raises `UnknownSchemaError`."""
    version = stored.get("SchemaVersion", SCHEMA_VERSION)
    if version > SCHEMA_VERSION:
        raise UnknownSchemaError(
            f"row {stored['RowKey']} has schema version {version}; this app reads up to {SCHEMA_VERSION}"
        )
    return {name: _loaded(value) for name, value in stored.items() if name not in KEYS}


def _stored(name: str, value: Any) -> Any:
    if isinstance(value, datetime):
        return aware(value).astimezone(UTC)
    if isinstance(value, str) and len(value) > MOST_CHARACTERS // 2:
        units = len(value.encode("utf-16-le", "surrogatepass")) // 2
        if units > MOST_CHARACTERS:
            raise InvalidError([f"{name}: {units} characters; a property can hold {MOST_CHARACTERS}"])
    return str(value) if isinstance(value, str) else value


def _loaded(value: Any) -> Any:
    """Return the SDK's own kind of datetime as a plain one."""
    return datetime.combine(value.date(), value.time(), UTC) if isinstance(value, datetime) else value


def entity_of(bucket: str, key: str, record: Record) -> dict[str, Any]:
    """Return the entity of any record."""
    match record:
        case OrderState():
            columns = _state_columns(record)
        case Step():
            columns = _step_columns(record)
        case HistoryEntry():
            columns = _history_columns(record)
        case AgendaRow():
            columns = {"OrderID": record.order_id, **record.data}
        case Order():
            columns = _order_columns(record)
    return entity(bucket, key, columns)


def record_of(stored: Columns) -> Record:
    """Return the record of any entity, whose kind its key tells; raises `UnreadableRowError`."""
    try:
        return _record_of(stored)
    except (LookupError, ValueError, TypeError, AttributeError) as fault:
        what = f" {fault}" if isinstance(fault, KeyError) else ""  # others repeat what the row holds
        raise UnreadableRowError(f"row {stored['RowKey']} cannot be read: {type(fault).__name__}{what}") from fault


def agenda_row_of(stored: Columns) -> AgendaRow:
    """Return the row of the agenda; one that cannot be read comes with its fault, so that others come beside it."""
    key = stored["RowKey"]
    try:
        columns = columns_of(stored)
        own = columns.pop("OrderID", "")
        return AgendaRow(key=key, order_id=order_in(key) or own, data=columns)
    except (UnreadableRowError, TypeError) as fault:
        return AgendaRow(key=key, order_id=order_in(key), fault=str(fault))


def _record_of(stored: Columns) -> Record:
    key = stored["RowKey"]
    if key.startswith("!"):
        return agenda_row_of(stored)
    columns = columns_of(stored)
    order_id, kind, *rest = key.split("|")
    match kind:
        case "state":
            return _state(columns)
        case "step":
            return _step(int(rest[0]), columns)
        case "history":
            return _history(columns)
        case _:
            return _order(order_id, columns)


def _order_columns(order: Order) -> Columns:
    items = [{"sku": item.sku, "quantity": item.quantity, "unitPrice": item.unit_price} for item in order.items]
    return {
        "OrderID": order.order_id,
        "PlacedAt": order.placed_at,
        "CustomerName": order.customer_name,
        "CustomerEmail": order.customer_email,
        "Items": json_text(items),
    }


def _order(order_id: str, columns: Columns) -> Order:
    items = (
        Item(sku=item["sku"], quantity=item["quantity"], unit_price=item["unitPrice"])
        for item in json.loads(columns["Items"])
    )
    return Order(
        order_id=order_id,
        placed_at=columns["PlacedAt"],
        customer_name=columns["CustomerName"],
        customer_email=columns["CustomerEmail"],
        items=tuple(items),
    )


def _state_columns(state: OrderState) -> Columns:
    return {
        "OrderID": state.order_id,
        "LockedBy": state.locked_by,
        "CompleteBy": state.complete_by,
        "ProcessState": state.process_state,
        "FailureCount": state.failure_count,
        "Version": state.version,
        "Workflow": state.workflow,
        "WorkflowVersion": state.workflow_version,
        "Priority": state.priority,
        "NotBefore": state.not_before,
        "UpdatedAt": state.updated_at,
        "Direction": state.direction,
        "Outcome": state.outcome,
        "Reason": state.reason,
        "ReplyTo": state.reply_to,
        "Agenda": None if state.agenda is None else json_text(state.agenda),
    }


def _state(columns: Columns) -> OrderState:
    outcome = columns.get("Outcome")
    return OrderState(
        order_id=columns["OrderID"],
        locked_by=columns.get("LockedBy"),
        complete_by=columns.get("CompleteBy"),
        process_state=ProcessState(columns["ProcessState"]),
        failure_count=columns["FailureCount"],
        version=columns["Version"],
        workflow=columns["Workflow"],
        workflow_version=columns["WorkflowVersion"],
        priority=Priority(columns["Priority"]),
        not_before=columns["NotBefore"],
        updated_at=columns["UpdatedAt"],
        direction=Direction(columns.get("Direction", Direction.FORWARD)),
        outcome=Outcome(outcome) if outcome else None,
        reason=columns.get("Reason"),
        reply_to=columns.get("ReplyTo"),
        agenda=tuple(json.loads(columns["Agenda"])) if "Agenda" in columns else None,
    )


def _step_columns(step: Step) -> Columns:
    return {
        "Name": step.name,
        "Capability": step.capability,
        "Agent": step.agent,
        "State": step.state,
        "CompleteBy": step.complete_by,
        "Attempts": step.attempts,
        "FailureCount": step.failure_count,
        "AllowanceSeconds": step.allowance.total_seconds(),
        "Threshold": step.threshold,
        "Policy": step.policy,
        "After": None if step.after is None else " ".join(step.after),
        "Undoable": step.undoable,
        "InDoubt": step.in_doubt,
        "SettlingSeconds": step.settling.total_seconds(),
        "RestSeconds": step.rest.total_seconds(),
        "MostRests": step.most_rests,
        "Rests": step.rests,
        "TriedUntil": step.tried_until,
        "NotBefore": step.not_before,
        "Reason": step.reason,
        "Result": None if step.result is None else json_text(step.result),
    }


def _step(number: int, columns: Columns) -> Step:
    after, result = columns.get("After"), columns.get("Result")
    return Step(
        number=number,
        name=columns["Name"],
        capability=columns.get("Capability", columns["Agent"]),
        agent=columns["Agent"],
        state=StepState(columns["State"]),
        complete_by=columns.get("CompleteBy"),
        attempts=columns["Attempts"],
        failure_count=columns["FailureCount"],
        allowance=timedelta(seconds=columns["AllowanceSeconds"]),
        threshold=columns["Threshold"],
        policy=Policy(columns["Policy"]),
        after=None if after is None else tuple(after.split()),
        undoable=columns.get("Undoable", False),
        in_doubt=columns.get("InDoubt", False),
        settling=timedelta(seconds=columns.get("SettlingSeconds", 0)),
        rest=timedelta(seconds=columns.get("RestSeconds", 0)),
        most_rests=columns.get("MostRests", 0),
        rests=columns.get("Rests", 0),
        tried_until=columns.get("TriedUntil"),
        not_before=columns.get("NotBefore"),
        reason=columns.get("Reason"),
        result=None if result is None else json.loads(result),
    )


def _history_columns(entry: HistoryEntry) -> Columns:
    return {
        "At": entry.at,
        "Actor": entry.actor,
        "Event": entry.event,
        "Detail": entry.detail,
        "ChangeId": entry.change_id,
    }


def _history(columns: Columns) -> HistoryEntry:
    return HistoryEntry(
        at=columns["At"],
        actor=columns["Actor"],
        event=columns["Event"],
        detail=columns["Detail"],
        change_id=columns["ChangeId"],
    )
