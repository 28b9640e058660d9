"""Decisions as values: the rows to write, and the messages to send after the commit."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, Strict

from core import agenda
from core.agenda import AgendaRow
from core.happenings import Ended, Happening, Processed, Unknown, in_words, name_of
from core.keys import newest_first
from core.life import SETTLED, ProcessState, StepState, WhyNot
from core.messages import BusMessage, WakeUp, later
from core.orders import Snapshot, Step


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryEntry:
    """One entry of an order's history: the time, the actor and the events."""

    at: AwareDatetime
    actor: str
    happened: tuple[Happening | Unknown, ...]
    change_id: str = ""
    """Unique to the attempted write, so that its commit is recognised after a lost answer."""

    @property
    def event(self) -> str:
        """The name of the entry's most important event."""
        return name_of(self.happened)

    @property
    def detail(self) -> str:
        """The events in words."""
        return in_words(self.happened)

    def also(self, *happened: Happening) -> "HistoryEntry":
        """Return the entry with further events."""
        return replace(self, happened=(*self.happened, *happened))


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
    messages: tuple[BusMessage, ...] = ()
    """The messages to send after the commit; the work to be done is in the state."""

    def identified(self, change_id: str) -> "Change":
        """Return the change with the id by which its commit can be recognised."""
        return replace(self, entry=replace(self.entry, change_id=change_id))

    def changed_steps(self) -> tuple[Step, ...]:
        """Return the steps that differ from before."""
        before = self.before.steps if self.before else ()
        return tuple(step for step in self.after.steps if step not in before)

    def seconds(self, *now: StepState) -> dict[str, float]:
        """Return the duration of each attempt that ended in one of these states, by step.

        How long an answer from outside took is no measure of the system, and is left out.
        """
        ended = {step.name for step in self.after.in_state(*now)}
        running_before = self.before.at_work() if self.before else ()
        return {
            step.name: (self.entry.at - step.started_at).total_seconds()
            for step in running_before
            if step.name in ended and step.started_at
        }

    @property
    def ended(self) -> Processed | Ended | None:
        """The end of the order; None if it did not end by this change."""
        ends = (each for each in self.entry.happened if isinstance(each, Processed | Ended))
        return next(ends, None)

    def obligations(self) -> tuple[list[str], dict[str, AgendaRow]]:
        """Return the row keys of the obligations that are met, and the present ones by row key.

        An order that is over is owed nothing; its one row lists it.
        """
        before = self.before.state.agenda if self.before else ()
        owed = agenda.obligations(self.after) | agenda.listed_end(self.after)
        return [key for key in before if key not in owed], owed


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """A history entry that changes no state, such as that of a late reply (SCH-6)."""

    note_id: str
    """The id of the event: the same event seen twice is recorded once."""
    order_id: str
    version: int
    entry: HistoryEntry
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class NotClaimed:
    """A claim that was refused; nothing is written."""

    why: WhyNot


OPERATOR = "operator/"
"""The beginning of the actor of an operator's entries; the name follows."""


def acted_row(order_id: str, version: int, entry: HistoryEntry) -> AgendaRow | None:
    """Return the row that lists what an operator did to an order; None for any other entry."""
    if not entry.actor.startswith(OPERATOR):
        return None
    place = f"{newest_first(entry.at)}|{order_id}|{version}"
    said = {"At": entry.at, "Actor": entry.actor, "Event": entry.event, "Detail": entry.detail}
    return AgendaRow(key=f"{agenda.ACTED_PREFIX}{place}", order_id=order_id, data=said)


Decision = Change | Note | NotClaimed | None


def transition(
    before: Snapshot | None,
    after: Snapshot,
    entry: HistoryEntry,
    *,
    messages: tuple[BusMessage, ...] = (),
) -> Change:
    """Return the change from one snapshot of an order to its next version.

    `before` is None for a new order. What follows from the steps is derived here alone, whatever
    `after` says of it. A pending order that may go on now gets a wake-up, and one that pauses gets
    it at the end of the pause. An order that is over is closed.
    """
    after = _derived(before, after, entry.at)
    if after.state.meaning.is_over:
        after = after.released()
    pending = after.state.process_state is ProcessState.PENDING
    if pending and after.can_go_on and after.state.not_before is None:
        messages = (*messages, wake_up(after, before))
    elif after.is_pausing and after.state.not_before:
        messages = (*messages, later(wake_up(after, before), after.state.not_before))
    return Change(before=before, after=after, entry=entry, messages=messages)


def amendment(before: Snapshot, after: Snapshot, entry: HistoryEntry) -> Change:
    """Return the change of an order's records that moves nothing of it, such as an erasure.

    The order keeps its last change, its age and its place in every list, and wakes nobody.
    """
    return Change(
        before=before, after=after.with_state(version=before.state.version + 1), entry=entry
    )


def _derived(before: Snapshot | None, after: Snapshot, now: datetime) -> Snapshot:
    """Return the order with all that follows from its steps, its verbs and the time of the change.

    `not_before` and `waits_since` say when a scheduler can go on with it, `complete_by` and
    `locked_by` who works on it until when.
    """
    after = after.with_state(
        version=before.state.version + 1 if before else 1,
        updated_at=now,
        complete_by=_complete_by(after),
        locked_by=_locked_by(after),
        not_before=after.chosen_time(now),
    )
    until = None if after.is_pausing else after.state.not_before
    return after.with_state(waits_since=until or _waits_since(before, after, now))


def _complete_by(order: Snapshot) -> datetime | None:
    """Return by when a handled order's first step is due, or a pending one's next try (SUP-3)."""
    match order.state.process_state:
        case ProcessState.PROCESSING:
            return order.earliest_complete_by()
        case ProcessState.PENDING:
            return order.latest_retry_by()
        case _:
            return None


def _locked_by(order: Snapshot) -> str | None:
    """Return the scheduler that handles the order; None if it only awaits an answer (ANS-1)."""
    is_handled = order.state.process_state is ProcessState.PROCESSING and order.at_work()
    return order.state.locked_by if is_handled else None


def _waits_since(before: Snapshot | None, after: Snapshot, now: datetime) -> datetime:
    """Return the time since which the order waits, anew after progress or an operator's action.

    An attempt that comes to nothing, or that no agent begins, is no progress: the order keeps its
    place and its age.
    """
    if before is None:
        return now
    settled_before = {step.name for step in before.in_state(*SETTLED)}
    settled = {step.name for step in after.in_state(*SETTLED)}
    set_going = after.state.is_set_going(before.state)
    return now if set_going or settled != settled_before else min(before.state.waits_since, now)


def wake_up(after: Snapshot, before: Snapshot | None = None) -> BusMessage:
    """Return the message with the order, its lane, and the steps that may begin now (SUP-3)."""
    ready_before = before.ready() if before else ()
    message = WakeUp(
        order_id=after.order_id,
        steps=tuple(step.name for step in after.ready() if step not in ready_before),
        needs=after.needs(),
        priority=after.state.priority,
        since=after.state.waits_since,
    )
    return message.to_bus()
