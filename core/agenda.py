"""The agenda: one row for each open obligation, sorted by when it falls due.

The obligations of an order follow from its records alone, so no transition has to remember them: it
deletes the rows of obligations that are met, and writes those of all that remain. A finished order
has no obligations and no rows, so the cost of a periodic query never depends on how many orders the
store has held (SUP-2).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from core.keys import LAST, newest_first, sortable, time_of
from core.life import MEANINGS, Outcome, ProcessState, Situation, StepState
from core.orders import Priority
from engine.domain import work_index
from engine.domain.causes import group_of
from engine.domain.orders import Order, WorkItem
from engine.domain.states import (
    AtWork,
    AwaitingExternalEvent,
    UnderWay,
    UndoFailed,
)
from engine.domain.steps import Step
from engine.domain.work_index import LATER, RANK, WorkItemKind
from engine.words import words_of


class Kind(StrEnum):
    """The kinds of obligations.

    A pending order needs a claim, a running one a check of its complete-by time, as one has that
    waits for an answer from outside; one in `Error` needs an operator's action, a held one its
    release, and a row of the outbox has to be sent.
    """

    PENDING = "!pending"
    RUNNING = "!running"
    WAITING = "!waiting"
    ERROR = "!error"
    HELD = "!held"
    OUTBOX = "!outbox"


LISTS = {
    "Pending": Kind.PENDING,
    "Processing": Kind.RUNNING,
    "Waiting": Kind.WAITING,
    "Error": Kind.ERROR,
    "Held": Kind.HELD,
}
"""The lists of open orders that operators have; each open order is in one of them (`list_of`).

The list of those that wait for an answer from outside begins with the first that is due.
"""

LIST_OF = {kind: name for name, kind in LISTS.items()}
"""The name of the list that is read from the rows of each kind."""


ENDED_LISTS = {each.word: situation for situation, each in MEANINGS.items() if each.is_over}
"""The lists of the orders that are over, newest first; those that were cancelled are undone."""

ENDED_PREFIX = "_ended|"
"""The prefix of the rows by which orders that are over are listed: they are owed nothing."""


ACTED_PREFIX = "_acted|"
"""The prefix of the rows that list what operators did to orders, the newest first."""


STATES = {
    "Waiting": ProcessState.PROCESSING,
    "Held": ProcessState.PENDING,
    **{
        name: ProcessState.ERROR
        for name, situation in ENDED_LISTS.items()
        if situation is not Situation.PROCESSED
    },
}
"""The usual state in each list that has no state's name; held orders may be in any open state."""


def state_in(list_name: str) -> ProcessState:
    """Return the usual state of the orders in this list."""
    return STATES.get(list_name) or ProcessState(list_name)


SITUATIONS = {
    "Pending": Situation.PENDING,
    "Processing": Situation.PROCESSING,
    "Waiting": Situation.AWAITING,
    "Error": Situation.FAILED,
    "Held": Situation.HELD,
    **ENDED_LISTS,
}


def situation_in(list_name: str) -> Situation:
    """Return the usual situation of the orders in this list."""
    return SITUATIONS[list_name]


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


RANKED = {rank: priority for priority, rank in RANK.items()}

MAX_SHOWN = 200
"""Maximum number of characters of a step's last answer in a row of the agenda."""

NOTHING = work_index.NO_AGENT
"""Stands for the capability of an order that needs none, as a claim ends it, for example."""


def obligations(order: Order) -> dict[str, AgendaRow]:
    """Return the rows of this order by key, derived from its records alone.

    An order that is over is owed nothing; its one row lists it.
    """
    items = work_index.work_items(order, order.updated_at, order.derived.ready_since)
    shown = summary(order)
    return {item.key: _row(order, item, shown) for item in items}


def _row(order: Order, item: WorkItem, shown: Mapping[str, Any]) -> AgendaRow:
    """Return the row of a work item, with what lists show of its order.

    Of several claims each says when it is due, and all but the first name no list.
    """
    data = dict(shown)
    if not item.is_first:
        del data["List"]
    if item.key.startswith(f"{Kind.PENDING}|"):
        data |= {"NotBefore": item.not_before}
    known = {name: value for name, value in data.items() if value is not None}
    return AgendaRow(key=item.key, order_id=order.order_id, data=known)


def of_list(
    name: str, since: datetime | None = None, until: datetime | None = None
) -> tuple[str, str]:
    """Row-key range [from, to) of a list; that of ended orders is sorted by time, newest first."""
    if name in LISTS:
        return all_of(LISTS[name])
    place = f"{ENDED_PREFIX}{ENDED_LISTS[name]}|"
    start = f"{newest_first(until)}{LAST}" if until else ""
    end = f"{newest_first(since)}|" if since else ""
    return f"{place}{start}", f"{place}{end}{LAST}"


def list_of(order: Order) -> str:
    """Return the name of the one list that has the order (OPR-1)."""
    kind = work_index.list_of(order)
    return order.meaning.word if kind is WorkItemKind.ENDED else LIST_OF[Kind(kind)]


def is_first(row: AgendaRow) -> bool:
    """Whether it is the first row of its kind for its order; lists pass over further claims.

    A row that cannot be read is listed as such.
    """
    return "List" in row.data or bool(row.fault)


def summary(order: Order) -> dict[str, Any]:
    """Return what lists show of the order; a table stores no nulls, so those are left out."""
    failed = tuple(step for step in order.steps if step.pattern_state is StepState.FAILED)
    if order.outcome is Outcome.UNDO_INCOMPLETE:  # it waits for those whose undo failed
        failed = order.in_state(UndoFailed) or failed
    known = {
        "List": list_of(order),
        "Situation": str(order.situation),
        "ProcessState": str(order.process_state),
        "FailureCount": order.failures,
        "Priority": str(order.priority),
        "WaitsSince": order.derived.ready_since,
        "NotBefore": order.derived.not_before,
        "Workflow": order.workflow,
        "WorkflowVersion": order.workflow_version,
        **(_current(order) if not order.has_ended else {}),
        "Agents": " ".join(step.agent for step in order.in_state(AtWork)) or None,
        "WaitsFor": " ".join(step.name for step in order.in_state(AwaitingExternalEvent)) or None,
        "Outcome": order.outcome and str(order.outcome),
        "FailedSteps": " ".join(step.name for step in failed) or None,
        "FailedAgents": " ".join(step.agent for step in failed) or None,
        "Cause": order.cause and group_of(order.cause),
        "Reason": _reason(order),
        "UpdatedAt": order.updated_at,
    }
    return {name: value for name, value in known.items() if value is not None}


def _reason(order: Order) -> str | None:
    """Return why the order is where it is: on hold, who holds it and why."""
    if order.hold:
        return f"held by {order.hold.by}: {order.hold.note}"
    return words_of(order.cause) if order.cause else None


def _current(order: Order) -> dict[str, Any]:
    """Return what lists show of the step that an open order is at: the one that failed most."""
    under_way: tuple[Step, ...] = order.in_state(UnderWay)
    at = max((*under_way, *order.ready), key=lambda step: step.counts.failures, default=None)
    if at is None:
        return {}
    # An attempt that runs has no cause; of those before it, timeouts alone are counted.
    last = words_of(at.cause) if at.cause else "timed out" if at.counts.failures else None
    return {
        "Step": at.name,
        "Attempt": at.counts.failures + 1,
        "Threshold": at.rules.threshold,
        "LastAnswer": last and last[:MAX_SHOWN],
        "CompleteBy": at.complete_by,
    }


def all_of(kind: Kind) -> tuple[str, str]:
    """Row-key range [from, to) of every obligation of this kind."""
    return f"{kind}|", f"{kind}|{LAST}"


def everything() -> tuple[str, str]:
    """Row-key range [from, to) of every obligation, sorted by kind."""
    return f"{min(Kind)}|", f"{max(Kind)}|{LAST}"


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
    """Whether the order may be claimed at `due`; if so, all before it in its lane may be too.

    Only a chosen time holds it back, which follows all others in the lane. The time since which an
    order waits may be that of a process whose clock is ahead.
    """
    return pending.key.split("|", 3)[-1] <= f"{LATER}|{sortable(due)}|{LAST}"


def waits_since_after(pending: AgendaRow, time: datetime) -> bool:
    """Whether the order waits since a time after this one, and for no chosen time."""
    place = pending.key.split("|", 3)[-1]
    return f"{sortable(time)}|{LAST}" < place < LATER


def waiting_since(pending: AgendaRow, time: datetime) -> AgendaRow:
    """Return the row of an order without a chosen time as if the order waited since this time."""
    *lane, _, order_id = pending.key.split("|")
    return replace(pending, key="|".join([*lane, sortable(time), order_id]))


def pauses(pending: AgendaRow, now: datetime) -> bool:
    """Whether the order waits for the end of a pause, in its place among those that do not."""
    until: datetime | None = pending.data.get("NotBefore")
    return until is not None and until > now


def was_announced(pending: AgendaRow) -> bool:
    """Whether a wake-up has named the order at its last change.

    None has named an order that waits for a chosen time or pauses, or that a scheduler handles
    while one of its steps waits.
    """
    waits = pending.key.split("|")[3] == LATER or "NotBefore" in pending.data
    return not waits and pending.data["ProcessState"] == ProcessState.PENDING


def ahead(pending: AgendaRow, time: datetime) -> tuple[str, str]:
    """Row-key range [from, to) of the orders of the same lane that wait since after this time."""
    claim_lane = "|".join(pending.key.split("|")[:3])
    return f"{claim_lane}|{sortable(time)}|{LAST}", f"{claim_lane}|{LATER}"


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


def overdue(now: datetime, kind: Kind = Kind.RUNNING) -> tuple[str, str]:
    """Row-key range [from, to) of the orders with a step past its complete-by time (SUP-2).

    With the kind `WAITING`, of those whose answer from outside is overdue.
    """
    return f"{kind}|", f"{kind}|{sortable(now)}"


def held_before(time: datetime) -> tuple[str, str]:
    """Row-key range [from, to) of the orders that have been held since before that time."""
    return f"{Kind.HELD}|", f"{Kind.HELD}|{sortable(time)}"
