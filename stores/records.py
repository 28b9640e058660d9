"""The records of table `orders` as columns: each property is named once, for writing and for reading."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from core.agenda import AgendaRow
from core.changes import HistoryEntry
from core.errors import UnreadableRowError
from core.keys import order_in, sortable
from core.messages import json_text
from core.orders import Direction, OnFailure, Order, OrderState, Outcome, Priority, ProcessState, Step, StepState
from stores.tables import OLDEST_ORDERS, Columns, Stored, aware, columns_of


@dataclass(frozen=True, slots=True)
class StateRecord:
    """What changes of an order, in one row and under one ETag: its state and its steps."""

    state: OrderState
    steps: tuple[Step, ...]


Record = Order | StateRecord | HistoryEntry | AgendaRow


def _same(value: Any) -> Any:
    return value


def _moment(text: str) -> datetime:
    return aware(datetime.fromisoformat(text))


def _object(text: str) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise TypeError(f"Payload is a {type(value).__name__}")
    return value


def _seconds(value: float) -> timedelta:
    return timedelta(seconds=value)


@dataclass(frozen=True, slots=True)
class Property:
    """One field of a record: its column, how it is written, and how it is read."""

    field: str
    column: str
    kind: type | tuple[type, ...] = str
    """Of what is stored: a hand in the table may have put anything there."""
    written: Callable[[Any], Any] = _same
    read: Callable[[Any], Any] = _same
    optional: bool = False
    """Whether the record may say nothing of it."""


def _duration(field: str, column: str) -> Property:
    return Property(field, column, (int, float), timedelta.total_seconds, _seconds)


def _time(field: str, column: str) -> Property:
    """Return the property of a time within JSON, which has none."""
    return Property(field, column, str, sortable, _moment, optional=True)


ORDER = (
    Property("order_id", "OrderID"),
    Property("placed_at", "PlacedAt", datetime),
    Property("payload", "Payload", str, json_text, _object),
)

STATE = (
    Property("order_id", "OrderID"),
    Property("locked_by", "LockedBy", optional=True),
    Property("complete_by", "CompleteBy", datetime, optional=True),
    Property("process_state", "ProcessState", read=ProcessState),
    Property("failure_count", "FailureCount", int),
    Property("version", "Version", int),
    Property("workflow", "Workflow"),
    Property("workflow_version", "WorkflowVersion", int),
    Property("priority", "Priority", read=Priority),
    Property("not_before", "NotBefore", datetime),
    Property("updated_at", "UpdatedAt", datetime),
    Property("direction", "Direction", read=Direction),
    Property("outcome", "Outcome", read=Outcome, optional=True),
    Property("reason", "Reason", optional=True),
    Property("reply_to", "ReplyTo", optional=True),
    Property("agenda", "Agenda", str, json_text, lambda text: tuple(json.loads(text)), optional=True),
)

STEP = (
    Property("name", "Name"),
    Property("capability", "Capability"),
    Property("agent", "Agent"),
    Property("state", "State", read=StepState),
    _time("complete_by", "CompleteBy"),
    Property("attempts", "Attempts", int),
    Property("failure_count", "FailureCount", int),
    _duration("timeout", "TimeoutSeconds"),
    Property("threshold", "Threshold", int),
    Property("on_failure", "OnFailure", read=OnFailure),
    Property("after", "After", (list, tuple), read=tuple),
    Property("undoable", "Undoable", bool),
    Property("in_doubt", "InDoubt", bool),
    _duration("late_effect_window", "LateEffectWindowSeconds"),
    _duration("cooldown", "CooldownSeconds"),
    Property("max_cooldowns", "MaxCooldowns", int),
    Property("cooldowns", "Cooldowns", int),
    _time("tried_until", "TriedUntil"),
    _time("not_before", "NotBefore"),
    Property("reason", "Reason", optional=True),
)
"""An object of the array `Steps`; what the step keeps of its service's answer has a column of its own."""

HISTORY = (
    Property("at", "At", datetime),
    Property("actor", "Actor"),
    Property("event", "Event"),
    Property("detail", "Detail"),
    Property("change_id", "ChangeId"),
)

Made = TypeVar("Made")


def _columns(properties: Iterable[Property], record: object) -> dict[str, Any]:
    values = ((each, getattr(record, each.field)) for each in properties)
    return {each.column: each.written(value) for each, value in values if value is not None}


def _record(made: Callable[..., Made], properties: Iterable[Property], columns: Columns, **more: Any) -> Made:
    found = {
        each.field: each.read(_checked(each, columns[each.column]))
        for each in properties
        if each.column in columns or not each.optional
    }
    return made(**found, **more)


def _checked(wanted: Property, value: Any) -> Any:
    if not isinstance(value, wanted.kind):
        raise TypeError(f"{wanted.column} is a {type(value).__name__}")
    return value


def columns_of_record(record: Record) -> Columns:
    """Return the columns of any record."""
    match record:
        case Order():
            return _columns(ORDER, record)
        case StateRecord():
            return _state_columns(record)
        case HistoryEntry():
            return _columns(HISTORY, record)
        case AgendaRow():
            return {"OrderID": record.order_id, **record.data}


def _state_columns(record: StateRecord) -> Columns:
    results = {
        result_column(place): json_text(step.result)
        for place, step in enumerate(record.steps)
        if step.result is not None
    }
    steps = json_text([_columns(STEP, step) for step in record.steps])
    return _columns(STATE, record.state) | {"Steps": steps} | results


def result_column(place: int) -> str:
    """Return the name of the column in which the result of the step at this place stands."""
    return f"Result{place:02d}"


def record_of(stored: Stored) -> Record:
    """Return the record of any row, whose kind its key tells; raises `UnreadableRowError`.

    A row of the agenda that cannot be read comes with its fault, so that others come beside it.
    """
    if stored.key.startswith("!"):
        return _agenda_row(stored)
    try:
        return _record_of(stored.key, columns_of(stored, OLDEST_ORDERS))
    except (LookupError, ValueError, TypeError, AttributeError) as fault:
        what = f" {fault}" if isinstance(fault, KeyError | TypeError) else ""  # others repeat what the row holds
        raise UnreadableRowError(f"row {stored.key} cannot be read: {type(fault).__name__}{what}") from fault


def _agenda_row(stored: Stored) -> AgendaRow:
    try:
        columns = columns_of(stored, OLDEST_ORDERS)
        own = columns.pop("OrderID", "")
        return AgendaRow(key=stored.key, order_id=order_in(stored.key) or order_in(str(own)), data=columns)
    except (UnreadableRowError, TypeError) as fault:
        return AgendaRow(key=stored.key, order_id=order_in(stored.key), fault=str(fault))


def _record_of(key: str, columns: Columns) -> Record:
    match key.split("|")[1]:
        case "state":
            return _state_record(columns)
        case "history":
            return _record(HistoryEntry, HISTORY, columns)
        case _:
            return _record(Order, ORDER, columns)


def _state_record(columns: Columns) -> StateRecord:
    steps = [
        _record(Step, STEP, step, result=_result(columns.get(result_column(place))))
        for place, step in enumerate(json.loads(columns["Steps"]))
    ]
    return StateRecord(state=_record(OrderState, STATE, columns), steps=tuple(steps))


def _result(text: str | None) -> Any:
    return None if text is None else json.loads(text)
