"""The results of decisions: the transition of one commit, a note, or no claim."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, Strict

from engine.decisions import lists
from engine.decisions.drafts import NextVersion
from engine.domain import exact_json, work_index
from engine.domain.derive import amended
from engine.domain.digests import digest_of
from engine.domain.events import HistoryEvent, OrderEnded, OrderProcessed
from engine.domain.history import entry_name, line_of, to_data
from engine.domain.keys import newest_first
from engine.domain.messages import BusMessage
from engine.domain.orders import OrderAggregate
from engine.domain.states import AtWork, State
from engine.domain.statuses import NotClaimable
from engine.domain.steps import Step
from engine.domain.work_index import IndexRow


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryEntry:
    """One entry of an order's history: the time, the actor and the events."""

    at: AwareDatetime
    actor: str
    events: tuple[HistoryEvent, ...]
    change_id: str = ""
    """A unique id of the attempted write. It identifies the commit after a lost answer."""

    @property
    def event(self) -> str:
        """The name of the entry's most important event."""
        return entry_name(self.events)

    @property
    def detail(self) -> str:
        """The events as one line of codes and values."""
        return line_of(self.events)


@dataclass(frozen=True, kw_only=True, slots=True)
class OperatorEvent:
    """A CloudEvent for the operators (ALR-1).

    `event_id` stays the same however often the event is sent.
    """

    event_id: str
    """The id of the event. It stays the same if the event is sent again."""
    type: str
    """The type of the event."""
    subject: str
    """What the event is about, such as `orders/<order>`."""
    at: Annotated[AwareDatetime, Strict()]
    """The time at which the event was raised."""
    data: Mapping[str, Any]
    """The data of the event, as JSON."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Transition:
    """The new state, rows and messages of one commit.

    All rows are written in one conditional transaction.
    """

    before: OrderAggregate | None
    """None if the order is recorded for the first time (SUB-2)."""
    after: OrderAggregate
    entry: HistoryEntry
    messages: tuple[BusMessage, ...] = ()
    """The messages to send after the commit. The state has the work to be done."""

    def identified(self, change_id: str) -> "Transition":
        """Return the transition with the id that identifies its commit."""
        return replace(self, entry=replace(self.entry, change_id=change_id))

    def changed_steps(self) -> tuple[Step, ...]:
        before = self.before.steps if self.before else ()
        return tuple(step for step in self.after.steps if step not in before)

    def seconds(self, *now: type[State]) -> dict[str, float]:
        """Return the seconds of each attempt that ended in one of these states, by step.

        Waits for external events are left out, because they do not measure the system.
        """
        ended = {step.name for step in self.after.steps if isinstance(step.state, now)}
        running_before = self.before.in_state(AtWork) if self.before else ()
        return {
            step.name: (self.entry.at - step.started_at).total_seconds()
            for step in running_before
            if step.name in ended and step.started_at
        }

    @property
    def ended(self) -> OrderProcessed | OrderEnded | None:
        """The end of the order, or None if the order did not end by this transition."""
        ends = (
            event for event in self.entry.events if isinstance(event, OrderProcessed | OrderEnded)
        )
        return next(ends, None)

    def work_items(self) -> tuple[list[str], dict[str, IndexRow]]:
        """Return the row keys of the finished work items, and the present items by row key.

        No work is due for an order that is over. Its only row lists it.
        """
        written = self.before.derived.work_items if self.before else ()
        pending = lists.index_rows(self.after, self.after.derived.work_items)
        return [item.key for item in written if item.key not in pending], pending


def transition_of(next_version: NextVersion, actor: str, at: datetime | None = None) -> Transition:
    """Return the transition by this actor.

    The default time is the time of the order's last change.
    """
    return Transition(
        before=next_version.before,
        after=next_version.after,
        entry=HistoryEntry(
            at=at or next_version.after.updated_at, actor=actor, events=next_version.events
        ),
        messages=next_version.messages,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """A history entry that changes no state, such as the record of a late reply (SCH-6)."""

    note_id: str
    """The id of the event. The same event is recorded once."""
    order_id: str
    version: int
    entry: HistoryEntry
    events: tuple[OperatorEvent, ...] = ()


@dataclass(frozen=True, slots=True)
class NotClaimed:
    """A refused claim. Nothing is written."""

    why: NotClaimable


OPERATOR = "operator/"
"""The prefix of the actor in operators' entries. The name follows."""


def acted_row(order_id: str, version: int, entry: HistoryEntry) -> IndexRow | None:
    """Return the row that lists an operator's action on an order, or None for any other entry."""
    if not entry.actor.startswith(OPERATOR):
        return None
    return _acted(f"{newest_first(entry.at)}|{order_id}|{version}", order_id, entry)


def acted_on_all(since: datetime, entry: HistoryEntry) -> IndexRow:
    """Return the row that lists an operator's action on all orders.

    The row is the same for every call with the same `since`, so an action of many calls is listed
    once.
    """
    who = digest_of([entry.actor, entry.event, entry.detail])
    return _acted(f"{newest_first(since)}|all|{who}", "", entry)


def _acted(place: str, order_id: str, entry: HistoryEntry) -> IndexRow:
    columns = {
        "At": entry.at,
        "Actor": entry.actor,
        "Event": entry.event,
        "Detail": entry.detail,
        "Data": exact_json.write(to_data(entry.events)),
    }
    return IndexRow(key=f"{work_index.ACTED_PREFIX}{place}", order_id=order_id, data=columns)


Decision = Transition | Note | NotClaimed | None


def amendment(before: OrderAggregate, after: OrderAggregate, entry: HistoryEntry) -> Transition:
    """Return the transition of changed records that moves no state, such as an erasure.

    The order keeps its last transition, its age and its place in every list. No scheduler is woken.
    """
    return Transition(before=before, after=amended(before, after), entry=entry)
