"""A transition of the new records as the change of today's that is written."""

from dataclasses import replace

from core.changes import Change, HistoryEntry
from core.orders import Snapshot
from engine.conversion.history import happening_of
from engine.conversion.records import old_state, old_step
from engine.decisions.transitions import Transition


def change_of(before: Snapshot, transition: Transition, actor: str) -> Change:
    """Return the change of this order by this actor.

    A step that the decision left as it was keeps its record. So do the row keys of its work items:
    the store makes them anew.
    """
    known = transition.before.steps if transition.before else ()
    steps = tuple(
        record if step == was else old_step(step)
        for step, was, record in zip(transition.after.steps, known, before.steps, strict=True)
    )
    state = replace(old_state(transition.after), agenda=before.state.agenda)
    entry = HistoryEntry(
        at=transition.after.updated_at,
        actor=actor,
        happened=tuple(map(happening_of, transition.events)),
    )
    return Change(
        before=before,
        after=replace(before, order=transition.after.submitted, state=state, steps=steps),
        entry=entry,
        messages=transition.messages,
    )
