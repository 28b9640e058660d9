"""The records of table `orders` as columns."""

from collections.abc import Iterator
from dataclasses import dataclass

from core.agenda import AgendaRow
from core.changes import HistoryEntry
from core.errors import UnreadableRowError
from core.keys import order_in
from core.messages import json_in, json_text
from core.orders import Order, OrderState, Step
from stores.tables import OLDEST_ORDERS, Columns, Form, Stored, columns_of


@dataclass(frozen=True, slots=True)
class StateRecord:
    """What changes of an order, in one row and under one ETag: its state and its steps."""

    state: OrderState
    steps: tuple[Step, ...]


Record = Order | StateRecord | HistoryEntry | AgendaRow

ORDER = Form(Order, texts=("payload",), order_id="OrderID")
STATE = Form(OrderState, texts=("agenda",), order_id="OrderID")
STEP = Form(
    Step,
    texts=("result",),
    timeout="TimeoutSeconds",
    cooldown="CooldownSeconds",
    late_effect_window="LateEffectWindowSeconds",
)
"""An object of the array `Steps`, where times are text; the step's `Result` has a column of its own."""
HISTORY = Form(HistoryEntry)


def columns_of_record(record: Record) -> Columns:
    """Return the columns of any record."""
    match record:
        case Order():
            return ORDER.columns(record)
        case StateRecord():
            return _state_columns(record)
        case HistoryEntry():
            return HISTORY.columns(record)
        case AgendaRow():
            return {"OrderID": record.order_id, **record.data}


def _state_columns(record: StateRecord) -> Columns:
    steps = [STEP.columns(step, mode="json") for step in record.steps]
    results = {result_column(place): step.pop("Result") for place, step in enumerate(steps) if "Result" in step}
    return {**STATE.columns(record.state), "Steps": json_text(steps), **results}


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
    except (LookupError, ValueError, TypeError) as fault:
        raise UnreadableRowError(f"row {stored.key} cannot be read: {type(fault).__name__} {fault}") from fault


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
            return StateRecord(state=STATE.record(columns), steps=tuple(_steps(columns)))
        case "history":
            return HISTORY.record(columns)
        case _:
            return ORDER.record(columns)


def _steps(columns: Columns) -> Iterator[Step]:
    for place, step in enumerate(json_in(columns["Steps"])):
        name = result_column(place)
        yield STEP.record({**step, "Result": columns[name]} if name in columns else step)
