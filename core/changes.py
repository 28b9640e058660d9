"""What a decision is: a value that says which rows to write and which messages to send after the commit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, Strict

from core import agenda
from core.agenda import AgendaRow
from core.messages import BusMessage, WakeUp
from core.orders import ProcessState, Snapshot, Step, StepState


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryEntry:
    """One line of an order's history: when, who, what, and why."""

    at: AwareDatetime
    actor: str
    event: str
    detail: str = ""
    change_id: str = ""
    """Unique to the attempted write: tells after a lost answer whether it was this one that committed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """A CloudEvent for the operators (ALR-1); `event_id` is the same however often it is sent."""

    event_id: str
    type: str
    subject: str
    at: Annotated[AwareDatetime, Strict()]
    data: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A transition of one order: all its rows in one conditional transaction, then its messages."""

    before: Snapshot | None
    """None when the order is recorded for the first time (SUB-2)."""
    after: Snapshot
    entry: HistoryEntry
    events: tuple[Event, ...] = ()
    """Committed with the rows as an outbox, so that no crash can lose them."""
    messages: tuple[BusMessage, ...] = ()
    """Sent after the commit. They only wake somebody up: the state says what is to be done."""

    def identified(self, change_id: str) -> "Change":
        """Return the change under the id by which its commit can be recognised."""
        return replace(self, entry=replace(self.entry, change_id=change_id))

    def changed_steps(self) -> tuple[Step, ...]:
        """Return the steps that are not as they were."""
        before = self.before.steps if self.before else ()
        return tuple(step for step in self.after.steps if step not in before)

    def seconds(self, *now: StepState) -> dict[str, float]:
        """Return how long the steps took that ran and are so now: their last attempt, from its start to its answer."""
        done = {step.name for step in self.after.in_state(*now)}
        ended = (step for step in (self.before.running() if self.before else ()) if step.name in done)
        return {
            step.name: (self.entry.at - step.complete_by + step.timeout).total_seconds()
            for step in ended
            if step.complete_by
        }

    def obligations(self) -> tuple[list[str], dict[str, AgendaRow]]:
        """Return the row keys of the obligations that are met, and by row key those that there are now."""
        owed = agenda.obligations(self.after)
        before = agenda.keys_of(self.before) if self.before else ()
        return [key for key in before if key not in owed], owed


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """Something worth recording that changes no state, such as a late reply (SCH-6)."""

    note_id: str
    """Names what was noted: the same thing seen twice is recorded once."""
    order_id: str
    version: int
    entry: HistoryEntry
    events: tuple[Event, ...] = ()


Decision = Change | Note | None


def transition(
    before: Snapshot,
    after: Snapshot,
    entry: HistoryEntry,
    *,
    events: tuple[Event, ...] = (),
    messages: tuple[BusMessage, ...] = (),
) -> Change:
    """Return the change from one snapshot of an order to its next version.

    From when on a pending order may be claimed follows from its steps; if it is now, a scheduler is woken.
    """
    after = after.with_state(version=before.state.version + 1, updated_at=entry.at)
    if after.state.process_state is ProcessState.PENDING:
        after = after.with_state(not_before=after.claimable_from(_waits_since(before, entry.at)))
        messages = (*messages, *_wake_up(before, after))
    return Change(before=before, after=after, entry=entry, events=events, messages=messages)


def _waits_since(before: Snapshot, now: datetime) -> datetime:
    """Return since when the order waits: one that might be claimed already keeps its place among the others."""
    return min(before.state.not_before, now) if before.state.process_state is ProcessState.PENDING else now


def _wake_up(before: Snapshot, after: Snapshot) -> Iterator[BusMessage]:
    """Name the order, and the steps that may begin because of this change (SUP-3)."""
    if after.state.not_before <= after.state.updated_at:
        ready_before = before.ready()
        steps = tuple(step.name for step in after.ready() if step not in ready_before)
        yield WakeUp(order_id=after.order_id, steps=steps).to_bus()
