"""What a decision is: a value that says which rows to write and which messages to send after the commit."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from core import agenda
from core.agenda import AgendaRow
from core.messages import BusMessage
from core.orders import Snapshot, Step


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryEntry:
    """One line of an order's history: when, who, what, and why."""

    at: datetime
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
    at: datetime
    data: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class OutboxEntry:
    """An event that is committed and not yet confirmed as sent, with the key by which it is confirmed."""

    key: str
    event: Event


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
        """Return the steps whose rows have to be written."""
        before = self.before.steps if self.before else ()
        return tuple(step for step in self.after.steps if step not in before)

    def agenda_difference(self) -> tuple[list[str], list[AgendaRow]]:
        """Return the row keys of the obligations that are met, and the rows that are new or say something new."""
        old = agenda.obligations(self.before) if self.before else {}
        new = agenda.obligations(self.after)
        return [key for key in old if key not in new], [row for key, row in new.items() if old.get(key) != row]


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
    """Return the change from one snapshot of an order to its next version."""
    after = after.with_state(version=before.state.version + 1, updated_at=entry.at)
    return Change(before=before, after=after, entry=entry, events=events, messages=messages)
