"""The agenda: one row for each open obligation, sorted by when it falls due.

What an order owes follows from its records alone, so no transition has to remember it: it deletes the rows of what was
owed before and is not owed now, and writes those of all that is. A finished order owes nothing and has no rows, so what
a periodic query costs never depends on how many orders the store has held (SUP-2).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from core.keys import LAST, sortable, time_of
from core.life import ProcessState, StepState
from core.orders import OrderState, Priority, Snapshot


class Kind(StrEnum):
    """What is owed: a claim, a look at the complete-by time, an operator's action or release, something to send."""

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


@dataclass(frozen=True, kw_only=True, slots=True)
class AgendaRow:
    """One open obligation; `data` is what a list shows without loading the order, or what is to be sent.

    Whoever needs something of the data may find that it is not there, or is nonsense: that concerns this row alone.
    """

    key: str
    order_id: str
    data: Mapping[str, Any] = field(default_factory=dict)
    fault: str = ""
    """Why nobody can read the row: then it has no data, but its key still tells what is owed to whom, and when."""


RANK = {Priority.HIGH: "0", Priority.NORMAL: "1"}
RANKED = {rank: priority for priority, rank in RANK.items()}

LATER = "later"
"""In the key of a pending order: it may not be claimed before the time that follows."""

NOTHING = "-"
"""Stands for the capability of an order that needs none: whoever claims it ends it."""


def obligations(snapshot: Snapshot) -> dict[str, AgendaRow]:
    """Return by row key what is owed to this order: derived from its records, and from nothing else."""
    state = snapshot.state
    keys = []
    if snapshot.can_go_on:
        keys.append(
            f"{claim_lane(state.priority, snapshot.needs() or NOTHING)}{_place(state)}|{state.order_id}"
        )
    if due := snapshot.earliest_complete_by():
        keys.append(f"{Kind.RUNNING}|{sortable(due)}|{state.order_id}")
    if state.meaning.waits_for_operator:
        keys.append(f"{Kind.ERROR}|{sortable(state.updated_at)}|{state.order_id}")
    if state.held_since:
        keys.append(f"{Kind.HELD}|{sortable(state.held_since)}|{state.order_id}")
    return {
        key: AgendaRow(key=key, order_id=state.order_id, data=_summary(snapshot)) for key in keys
    }


def _place(state: OrderState) -> str:
    """Return where the order stands in its lane: whatever may not be claimed yet, behind all that may."""
    if state.not_before:
        return f"{LATER}|{sortable(state.not_before)}"
    return sortable(state.waits_since)


def keys_of(snapshot: Snapshot) -> Collection[str]:
    """Return the row keys under which it stands what is owed to this order, as it was recorded."""
    return obligations(snapshot) if snapshot.state.agenda is None else snapshot.state.agenda


def _summary(snapshot: Snapshot) -> dict[str, Any]:
    """Return what is known, without nulls: a table stores none, an absent property stands for one."""
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
    """Row-key range [from, to) of every obligation; those of a kind stand together."""
    return f"{min(Kind)}|", f"{max(Kind)}|{LAST}"


def claim_lane(priority: Priority, needs: str) -> str:
    """Row-key prefix of the pending orders of this priority and need (SCH-1).

    They wait apart, so that those for which there is no agent now hold nobody else up.
    """
    return f"{Kind.PENDING}|{RANK[priority]}|{needs}|"


def lane_of(pending: AgendaRow) -> tuple[Priority, str]:
    """Return the priority and the need of a pending order; raises LookupError or ValueError if its key names none."""
    _, rank, needs, *_ = pending.key.split("|")
    return RANKED[rank], needs


def end_of_claim_lane(pending: AgendaRow) -> str:
    """Return from which row key on the orders of the next priority or need wait."""
    return "|".join([*pending.key.split("|")[:3], LAST])


def since(row: AgendaRow) -> datetime:
    """Return from when on it is owed what the key of a pending, running or failed order says; raises ValueError."""
    return time_of(row.key.split("|")[-2])


def may_be_claimed(pending: AgendaRow, due: datetime) -> bool:
    """Whether the order's time has come by then; so it has for all that wait before it in its lane."""
    place = pending.key.split("|", 3)[-1].removeprefix(f"{LATER}|")
    return place <= f"{sortable(due)}|{LAST}"


def was_announced(pending: AgendaRow) -> bool:
    """Whether a wake-up named the order.

    One that waits for a chosen time, or of which a step waits while somebody handles it, was announced to nobody.
    """
    return (
        pending.key.split("|")[3] != LATER and pending.data["ProcessState"] == ProcessState.PENDING
    )


def due_later(pending: AgendaRow, due: datetime) -> tuple[str, str]:
    """Row-key range [from, to) of the orders of the same lane whose chosen time has come by then."""
    claim_lane = "|".join(pending.key.split("|")[:3])
    return f"{claim_lane}|{LATER}|", f"{claim_lane}|{LATER}|{sortable(due)}|{LAST}"


def waiting_and_running() -> tuple[str, str]:
    """Row-key range [from, to) of all that waits and all that runs; those that wait come first."""
    return f"{Kind.PENDING}|", f"{Kind.RUNNING}|{LAST}"


def in_time(now: datetime) -> tuple[str, str]:
    """Row-key range [from, to) of the orders with running steps, of which none is overdue."""
    return f"{Kind.RUNNING}|{sortable(now)}", f"{Kind.RUNNING}|{LAST}"


def overdue(now: datetime) -> tuple[str, str]:
    """Row-key range [from, to) of the orders with a step whose complete-by time has passed (SUP-2)."""
    return f"{Kind.RUNNING}|", f"{Kind.RUNNING}|{sortable(now)}"


def held_before(time: datetime) -> tuple[str, str]:
    """Row-key range [from, to) of the orders that are held since before that time."""
    return f"{Kind.HELD}|", f"{Kind.HELD}|{sortable(time)}"
