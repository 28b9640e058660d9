"""What a decision is: a value that says which rows to write and which messages to send after the commit."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, Strict

from core import agenda
from core.agenda import AgendaRow
from core.happenings import Happening, Unknown, in_words, name_of
from core.life import ENDED, SETTLED, ProcessState, StepState, WhyNot
from core.messages import BusMessage, WakeUp
from core.orders import Snapshot, Step


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryEntry:
    """One line of an order's history: when, who, and what happened."""

    at: AwareDatetime
    actor: str
    happened: tuple[Happening | Unknown, ...]
    change_id: str = ""
    """Unique to the attempted write: tells after a lost answer whether it was this one that committed."""

    @property
    def event(self) -> str:
        """The name of what happened."""
        return name_of(self.happened)

    @property
    def detail(self) -> str:
        """What happened, in words."""
        return in_words(self.happened)

    def also(self, *happened: Happening) -> "HistoryEntry":
        """Return the entry with what followed from it."""
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
        ended = (
            step for step in (self.before.running() if self.before else ()) if step.name in done
        )
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


@dataclass(frozen=True, kw_only=True, slots=True)
class NotClaimed:
    """A claim that was refused; nothing is written."""

    why: WhyNot


Decision = Change | Note | NotClaimed | None


def transition(
    before: Snapshot,
    after: Snapshot,
    entry: HistoryEntry,
    *,
    messages: tuple[BusMessage, ...] = (),
) -> Change:
    """Return the change from one snapshot of an order to its next version.

    When the order may go on, and since when it waits, follows from its steps; if nobody has it, and it may go on now,
    a scheduler is woken. An order that is over is not held any more.
    """
    now = entry.at
    after = after.with_state(
        version=before.state.version + 1, updated_at=now, not_before=after.chosen_time(now)
    )
    after = after.with_state(waits_since=after.state.not_before or _waits_since(before, after, now))
    if after.state.meaning.is_over:
        after = after.with_state(held_by=None, held_because=None, held_since=None)
    pending = after.state.process_state is ProcessState.PENDING
    if pending and after.can_go_on and after.state.not_before is None:
        messages = (*messages, wake_up(after, before))
    return Change(before=before, after=after, entry=entry, messages=messages)


def _waits_since(before: Snapshot, after: Snapshot, now: datetime) -> datetime:
    """Return since when the order waits: anew when something has come of it, or somebody has acted on it.

    An attempt that comes to nothing, or that nobody begins, is no progress: the order keeps its place and its age.
    """
    settled_before = {step.name for step in before.in_state(*SETTLED)}
    settled = {step.name for step in after.in_state(*SETTLED)}
    was, state = before.state, after.state
    is_released = was.is_held and not state.is_held
    acted_on = was.process_state in ENDED or was.direction is not state.direction or is_released
    return now if acted_on or settled != settled_before else min(before.state.waits_since, now)


def wake_up(after: Snapshot, before: Snapshot | None = None) -> BusMessage:
    """Return the message that names the order, where it waits, and the steps that may begin by this change (SUP-3)."""
    ready_before = before.ready() if before else ()
    message = WakeUp(
        order_id=after.order_id,
        steps=tuple(step.name for step in after.ready() if step not in ready_before),
        needs=after.needs(),
        priority=after.state.priority,
        since=after.state.waits_since,
    )
    return message.to_bus()
