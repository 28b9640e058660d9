"""The agenda: one row for each open obligation, sorted by when it falls due.

The obligations of an order follow from its records alone, so no transition has to remember them: it
deletes the rows of obligations that are met, and writes those of all that remain. A finished order
has no obligations and no rows, so the cost of a periodic query never depends on how many orders the
store has held (SUP-2).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from core.keys import LAST, sortable, time_of
from core.life import Direction, ProcessState, Situation, StepState, situation_of
from core.orders import OrderState, Priority, Snapshot


class Kind(StrEnum):
    """The kinds of obligations.

    A pending order needs a claim, a running one a check of its complete-by time, one in `Error` an
    operator's action, a held one its release, and a row of the outbox has to be sent.
    """

    PENDING = "!pending"
    RUNNING = "!running"
    ERROR = "!error"
    HELD = "!held"
    OUTBOX = "!outbox"


LISTS = {
    "Pending": Kind.PENDING,
    "Processing": Kind.RUNNING,
    "Error": Kind.ERROR,
    "Held": Kind.HELD,
}
"""The lists of open orders that operators have; a list of a state has the orders in that state."""


def state_in(list_name: str) -> ProcessState:
    """Return the state of the orders in this list; the held ones may be in any open state."""
    return ProcessState(list_name) if list_name in list(ProcessState) else ProcessState.PENDING


def situation_in(list_name: str) -> Situation:
    """Return the usual situation of the orders in this list."""
    return situation_of(
        state_in(list_name),
        None,
        Direction.FORWARD,
        failed_before=False,
        is_held=LISTS[list_name] is Kind.HELD,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class AgendaRow:
    """One open obligation; `data` is shown in lists without loading the order, or is to be sent.

    Readers have to expect that a field of `data` is missing or invalid: only this row is affected.
    """

    key: str
    order_id: str
    data: Mapping[str, Any] = field(default_factory=dict)
    fault: str = ""
    """Why the row cannot be read, or empty.

    Then it has no data, but its key still names the obligation, the order and the time.
    """


RANK = {Priority.HIGH: "0", Priority.NORMAL: "1"}
RANKED = {rank: priority for priority, rank in RANK.items()}

LATER = "later"
"""Part of the key of a pending order that may not be claimed before the time that follows it."""

NOTHING = "-"
"""Stands for the capability of an order that needs none: a claim ends it."""


def obligations(snapshot: Snapshot) -> dict[str, AgendaRow]:
    """Return the obligations of this order by row key, derived from its records alone."""
    state = snapshot.state
    keys = []
    if snapshot.can_go_on:
        lane = claim_lane(state.priority, snapshot.needs() or NOTHING)
        keys.append(f"{lane}{_place(state)}|{state.order_id}")
    if due := snapshot.earliest_complete_by():
        keys.append(f"{Kind.RUNNING}|{sortable(due)}|{state.order_id}")
    if state.meaning.waits_for_operator:
        keys.append(f"{Kind.ERROR}|{sortable(state.updated_at)}|{state.order_id}")
    if state.held_since:
        keys.append(f"{Kind.HELD}|{sortable(state.held_since)}|{state.order_id}")
    data = summary(snapshot)
    return {key: AgendaRow(key=key, order_id=state.order_id, data=data) for key in keys}


def _place(state: OrderState) -> str:
    """Return the order's place in its lane; orders that may not be claimed yet come last."""
    if state.not_before:
        return f"{LATER}|{sortable(state.not_before)}"
    return sortable(state.waits_since)


def keys_of(snapshot: Snapshot) -> Collection[str]:
    """Return the row keys of the order's obligations, as they were recorded."""
    return obligations(snapshot) if snapshot.state.agenda is None else snapshot.state.agenda


def summary(snapshot: Snapshot) -> dict[str, Any]:
    """Return what lists show of the order; a table stores no nulls, so those are left out."""
    state = snapshot.state
    known = {
        "Situation": str(state.situation),
        "ProcessState": str(state.process_state),
        "FailureCount": state.failure_count,
        "Priority": str(state.priority),
        "WaitsSince": state.waits_since,
        "NotBefore": state.not_before,
        "Workflow": state.workflow,
        "WorkflowVersion": state.workflow_version,
        "Agents": " ".join(step.agent for step in snapshot.running()) or None,
        "Outcome": state.outcome and str(state.outcome),
        "FailedSteps": " ".join(step.name for step in snapshot.in_state(StepState.FAILED)) or None,
        "Reason": state.shown_reason,
        "UpdatedAt": state.updated_at,
    }
    return {name: value for name, value in known.items() if value is not None}


def all_of(kind: Kind) -> tuple[str, str]:
    """Row-key range [from, to) of every obligation of this kind."""
    return f"{kind}|", f"{kind}|{LAST}"


def everything() -> tuple[str, str]:
    """Row-key range [from, to) of every obligation, sorted by kind."""
    return f"{min(Kind)}|", f"{max(Kind)}|{LAST}"


def claim_lane(priority: Priority, needs: str) -> str:
    """Row-key prefix of the pending orders of this priority and need (SCH-1).

    They wait apart, so that orders whose agents have no room do not block others.
    """
    return f"{Kind.PENDING}|{RANK[priority]}|{needs}|"


def lane_of(pending: AgendaRow) -> tuple[Priority, str]:
    """Return the priority and the need of a pending order.

    Raises LookupError or ValueError if its key names none.
    """
    _, rank, needs, *_ = pending.key.split("|")
    return RANKED[rank], needs


def end_of_claim_lane(pending: AgendaRow) -> str:
    """Return the row key after which the orders of the next priority or need follow."""
    return "|".join([*pending.key.split("|")[:3], LAST])


def since(row: AgendaRow) -> datetime:
    """Return the time in the key of an order's obligation; raises ValueError if it has none."""
    return time_of(row.key.split("|")[-2])


def may_be_claimed(pending: AgendaRow, due: datetime) -> bool:
    """Whether the order may be claimed at `due`; if so, all before it in its lane may be too."""
    place = pending.key.split("|", 3)[-1].removeprefix(f"{LATER}|")
    return place <= f"{sortable(due)}|{LAST}"


def was_announced(pending: AgendaRow) -> bool:
    """Whether a wake-up named the order.

    No wake-up names an order that waits for a chosen time, or that a scheduler handles while one of
    its steps waits.
    """
    return (
        pending.key.split("|")[3] != LATER and pending.data["ProcessState"] == ProcessState.PENDING
    )


def due_later(pending: AgendaRow, due: datetime) -> tuple[str, str]:
    """Row-key range [from, to) of the orders of the same lane whose chosen time is up at `due`."""
    claim_lane = "|".join(pending.key.split("|")[:3])
    return f"{claim_lane}|{LATER}|", f"{claim_lane}|{LATER}|{sortable(due)}|{LAST}"


def waiting_and_running() -> tuple[str, str]:
    """Row-key range [from, to) of pending and running orders; the pending ones come first."""
    return f"{Kind.PENDING}|", f"{Kind.RUNNING}|{LAST}"


def in_time(now: datetime) -> tuple[str, str]:
    """Row-key range [from, to) of the orders with running steps, none of them overdue."""
    return f"{Kind.RUNNING}|{sortable(now)}", f"{Kind.RUNNING}|{LAST}"


def overdue(now: datetime) -> tuple[str, str]:
    """Row-key range [from, to) of the orders with a step past its complete-by time (SUP-2)."""
    return f"{Kind.RUNNING}|", f"{Kind.RUNNING}|{sortable(now)}"


def held_before(time: datetime) -> tuple[str, str]:
    """Row-key range [from, to) of the orders that have been held since before that time."""
    return f"{Kind.HELD}|", f"{Kind.HELD}|{sortable(time)}"
