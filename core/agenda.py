"""The agenda: one row for each open obligation, sorted by when it falls due.

The obligations of an order follow from its records alone, so no transition has to remember them: it
deletes the rows of obligations that are met, and writes those of all that remain. A finished order
has no obligations and no rows, so the cost of a periodic query never depends on how many orders the
store has held (SUP-2).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from core.keys import LAST, newest_first, sortable, time_of
from core.life import ENDED, MEANINGS, Outcome, ProcessState, Situation, StepState
from core.orders import Priority, Snapshot, Step
from engine.domain.causes import group_of


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


RANK = {Priority.HIGH: "0", Priority.NORMAL: "1"}
RANKED = {rank: priority for priority, rank in RANK.items()}

LATER = "later"
"""Part of the key of a pending order that may not be claimed before the time that follows it."""

MAX_SHOWN = 200
"""Maximum number of characters of a step's last answer in a row of the agenda."""

NOTHING = "-"
"""Stands for the capability of an order that needs none, as a claim ends it, for example."""


def obligations(snapshot: Snapshot) -> dict[str, AgendaRow]:
    """Return the obligations of this order by row key, derived from its records alone."""
    state = snapshot.state
    keys = []
    if snapshot.can_go_on:
        lane = claim_lane(state.priority, snapshot.needs() or NOTHING)
        keys.append(f"{lane}{_place(snapshot)}")
    keys += _due(Kind.RUNNING, snapshot.at_work())
    if not state.is_held:  # its release moves the deadline of what it waits for (OPR-7)
        keys += _due(Kind.WAITING, snapshot.awaited())
    if state.meaning.waits_for_operator:
        keys.append(f"{Kind.ERROR}|{sortable(state.updated_at)}")
    if state.held_since:
        keys.append(f"{Kind.HELD}|{sortable(state.held_since)}")
    data = summary(snapshot)
    rows = (f"{key}|{state.order_id}" for key in keys)
    return {key: AgendaRow(key=key, order_id=state.order_id, data=data) for key in rows}


def _due(kind: Kind, steps: Iterable[Step]) -> Iterator[str]:
    """Yield the beginning of the row key for the first of these steps that is due, if any runs."""
    times = [step.complete_by for step in steps if step.complete_by]
    if times:
        yield f"{kind}|{sortable(min(times))}"


def listed_end(snapshot: Snapshot) -> dict[str, AgendaRow]:
    """Return by its key the row that lists an order which is over; none for any other order.

    An order that is over changes no more: its last change is its end, also after an erasure.
    """
    state = snapshot.state
    if not state.meaning.is_over:
        return {}
    ended = newest_first(state.updated_at)
    key = f"{ENDED_PREFIX}{state.situation}|{ended}|{state.order_id}"
    return {key: AgendaRow(key=key, order_id=state.order_id, data=summary(snapshot))}


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


def _place(snapshot: Snapshot) -> str:
    """Return the order's place in its lane; orders that wait for a chosen time come last.

    One that pauses keeps its place, from which `pauses` tells who may not be claimed yet.
    """
    state = snapshot.state
    if state.not_before and not snapshot.is_pausing:
        return f"{LATER}|{sortable(state.not_before)}"
    return sortable(state.waits_since)


def list_of(snapshot: Snapshot) -> str:
    """Return the one list that has the order (OPR-1).

    Who looks at what is awaited from outside finds all of it in one list. A pending order that no
    scheduler could go on with is in the list of those on which somebody works.
    """
    state = snapshot.state
    if state.meaning.is_over:
        return state.meaning.word
    if state.meaning.waits_for_operator:
        return LIST_OF[Kind.ERROR]
    if state.is_held:
        return LIST_OF[Kind.HELD]
    if snapshot.awaited():
        return LIST_OF[Kind.WAITING]
    waits = state.process_state is ProcessState.PENDING and snapshot.can_go_on
    return LIST_OF[Kind.PENDING if waits else Kind.RUNNING]


def summary(snapshot: Snapshot) -> dict[str, Any]:
    """Return what lists show of the order; a table stores no nulls, so those are left out."""
    state, failed = snapshot.state, snapshot.in_state(StepState.FAILED)
    if state.outcome is Outcome.UNDO_INCOMPLETE:  # it waits for those whose undo failed
        failed = tuple(step for step in failed if step.undo_failed) or failed
    known = {
        "List": list_of(snapshot),
        "Situation": str(state.situation),
        "ProcessState": str(state.process_state),
        "FailureCount": state.failure_count,
        "Priority": str(state.priority),
        "WaitsSince": state.waits_since,
        "NotBefore": state.not_before,
        "Workflow": state.workflow,
        "WorkflowVersion": state.workflow_version,
        **(_current(snapshot) if state.process_state not in ENDED else {}),
        "Agents": " ".join(step.agent for step in snapshot.at_work()) or None,
        "WaitsFor": " ".join(step.name for step in snapshot.awaited()) or None,
        "Outcome": state.outcome and str(state.outcome),
        "FailedSteps": " ".join(step.name for step in failed) or None,
        "FailedAgents": " ".join(step.agent for step in failed) or None,
        "Cause": state.cause and group_of(state.cause),
        "Reason": state.shown_reason,
        "UpdatedAt": state.updated_at,
    }
    return {name: value for name, value in known.items() if value is not None}


def _current(snapshot: Snapshot) -> dict[str, Any]:
    """Return what lists show of the step that an open order is at: the one that failed most."""
    at = max(
        (*snapshot.running(), *snapshot.ready()), key=lambda step: step.failure_count, default=None
    )
    if at is None:
        return {}
    # An attempt that runs has no reason; of those before it, timeouts alone are counted.
    last = at.reason or ("timed out" if at.failure_count else None)
    return {
        "Step": at.name,
        "Attempt": at.failure_count + 1,
        "Threshold": at.threshold,
        "LastAnswer": last and last[:MAX_SHOWN],
        "CompleteBy": at.complete_by,
    }


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
