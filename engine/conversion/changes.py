"""A transition of the new records as the change of today's that is written."""

from dataclasses import replace
from datetime import datetime

from core.changes import Change, HistoryEntry
from core.orders import Snapshot
from engine.conversion.history import happening_of
from engine.conversion.records import old_state, old_step, to_old
from engine.decisions.transitions import Transition


def first_change(transition: Transition, actor: str) -> Change:
    """Return the change that records a new order."""
    return Change(
        before=None,
        after=to_old(transition.after).with_state(agenda=()),
        entry=_entry(transition, actor, transition.after.updated_at),
        messages=transition.messages,
    )


def change_of(
    before: Snapshot, transition: Transition, actor: str, at: datetime | None = None
) -> Change:
    """Return the change of this order by this actor; its time is that of the order, if not given.

    A step that the decision left as it was keeps its record. So do the row keys of its work items:
    the store makes them anew.
    """
    known = transition.before.steps if transition.before else ()
    steps = tuple(
        record if step == was else old_step(step)
        for step, was, record in zip(transition.after.steps, known, before.steps, strict=True)
    )
    state = replace(old_state(transition.after), agenda=before.state.agenda)
    return Change(
        before=before,
        after=replace(before, order=transition.after.submitted, state=state, steps=steps),
        entry=_entry(transition, actor, at or transition.after.updated_at),
        messages=transition.messages,
    )


def _entry(transition: Transition, actor: str, at: datetime) -> HistoryEntry:
    happened = tuple(map(happening_of, transition.events))
    return HistoryEntry(at=at, actor=actor, happened=happened)
