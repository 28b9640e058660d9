"""The new records say of every reachable order what today's say, and their table allows every change."""

import pytest
from converting import differences, lost

from core.agenda import ENDED_LISTS, LIST_OF, list_of
from core.happenings import (
    Accepted,
    ActedOn,
    Answered,
    AskedOtherwise,
    BeginsLater,
    CoolsDown,
    Expired,
    NotNeeded,
    NotTried,
    RefusedEarly,
    Renewed,
    Restored,
    Settled,
    Skipped,
    StepCompleted,
    StepFailed,
    StepStarted,
    StepUndone,
    UndoRequested,
    Withdrawn,
)
from core.life import Direction
from engine.conversion.records import to_new, to_old
from engine.domain.derive import changed
from engine.domain.states import STATES
from engine.domain.table import TABLE, Event, kind_of, name_of
from engine.domain.work_index import capability_of
from exploration.sample import MORE, gather
from exploration.worlds import TESTED

OF_STEP = {
    StepStarted: {Event.START, Event.CONDITION_MET},
    StepCompleted: {Event.COMPLETE},
    StepUndone: {Event.COMPLETE},
    Answered: {Event.EXTERNAL_EVENT},
    RefusedEarly: {Event.EXTERNAL_EVENT},
    Withdrawn: {Event.CANCEL_REQUEST},
    StepFailed: {Event.REFUSE, Event.FAIL},
    NotNeeded: {Event.CONDITION_NOT_MET},
    BeginsLater: {Event.SCHEDULE},
    NotTried: {Event.NOT_ATTEMPTED},
    Accepted: {Event.DEFER},
    Expired: {Event.EXPIRE},
    CoolsDown: {Event.EXPIRE},
    Skipped: {Event.SKIP},
    Renewed: {Event.RETRY_WITH_NEW_KEY},
    Settled: {Event.SETTLE},
    AskedOtherwise: {Event.MOVE_DEADLINE},
}
"""What an event of the history does to its step."""
OF_ORDER = {
    UndoRequested: {Event.REQUEST_UNDO},
    Skipped: {Event.RESET},
    Renewed: {Event.RESET},
    Settled: {Event.RESET},
}
"""What it does to all steps of its order."""
OF_ACTION = {
    "resubmitted": {Event.RESET},
    "cancelled": {Event.REQUEST_UNDO},
    "hurried": {Event.END_COOLDOWN},
    "released": {Event.MOVE_DEADLINE},
}


def events_of(change, step):
    """What may have happened to a step by this change, as its history says."""
    found = set()
    if change.after.state.direction is Direction.UNDO:
        found.add(Event.REQUEST_UNDO)  # of a step that ran when its order turned back
    for event in change.entry.happened:
        if getattr(event, "step", None) == step.name:
            found |= OF_STEP.get(type(event), set())
        found |= OF_ORDER.get(type(event), set())
        if isinstance(event, ActedOn):
            found |= OF_ACTION.get(event.what, set())
    return found


def is_allowed(before, after, events):
    """Whether these events of the table lead from one step to the other, at most three in turn."""
    kinds = {kind_of(before.state)}
    goal = kind_of(after.state)
    if goal in kinds and before.counts.attempts == after.counts.attempts:
        return True
    for _ in range(3):
        kinds = {to for event in events for kind in kinds for to in TABLE[event].get(kind, ())}
        if goal in kinds:
            return True
    return False


def derived_otherwise(change, before, after):
    """What follows otherwise from the new records than it is recorded."""
    stored, now = change.after.state, change.entry.at
    if stored.updated_at != now:  # an erasure, which moves nothing
        return set()
    derived = changed(before, after, now).derived
    compared = {
        "complete_by": (stored.complete_by, derived.complete_by),
        "locked_by": (stored.locked_by, derived.locked_by),
        "not_before": (stored.not_before, derived.not_before),
        "ready_since": (stored.waits_since, derived.ready_since),
        "list": (list_of(change.after), in_lists(derived)),
        "work items": work_items(stored.agenda, derived, after),
    }
    return {name for name, (was, now) in compared.items() if was != now}


def in_lists(derived):
    """The list that has the order by one of its rows; several, if several rows list it."""
    kinds = [item.key.partition("|") for item in derived.work_items if item.is_listed]
    names = [
        ENDED_WORDS[rest.partition("|")[0]] if kind == ENDED else LIST_OF[kind]
        for kind, _, rest in kinds
    ]
    return " ".join(names)


ENDED = "_ended"
ENDED_WORDS = {str(situation): word for word, situation in ENDED_LISTS.items()}


def work_items(agenda, derived, after):
    """The recorded keys and the new ones; engine 7: today's have one lane of those that are needed."""
    keys = [item.key for item in derived.work_items]
    needed = {capability_of(step) for step in after.ready}
    if len(needed) > 1:
        lanes = {key.split("|")[2] for key in keys if key.startswith("!pending|")}
        assert lanes == needed
        keys = [key for key in keys if not key.startswith("!pending|")]
        agenda = [key for key in agenda if not key.startswith("!pending|")]
    return set(agenda), set(keys)


def faults(change, before, after):
    back = to_old(after)
    found = {f"lost: {name}" for name in differences(change.after.state, back.state)}
    for old, new in zip(change.after.steps, back.steps, strict=True):
        found |= {f"lost: {name}" for name in lost(old, new)}
    found |= {f"derived: {name}" for name in derived_otherwise(change, before, after)}
    is_restored = any(isinstance(event, Restored) for event in change.entry.happened)
    for step in before.steps if before and not is_restored else ():  # a copy is of another time
        then = after.step(step.name)
        if not is_allowed(step, then, events_of(change, step)):
            kinds = " -> ".join(name_of(kind_of(one.state)) for one in (step, then))
            found.add(f"not allowed: {kinds} by {change.entry.event}")
    return found


def check_records(sample):
    """Raise an error with the first change of each kind that both records tell otherwise."""
    found = {}
    for change in sample.changes.values():
        before, after = change.before and to_new(change.before), to_new(change.after)
        found |= dict.fromkeys(faults(change, before, after), change)
    assert found == {}


def test_the_new_records_say_the_same():
    """Nothing is lost, the same follows, and the table allows each change of a step by the event that it had."""
    few = gather(MORE, states=1, walks=3)  # a few courses of each world in which much can happen
    check_records(few)
    assert len(few.changes) > 100


RARE: set[str] = set()
"""States that no world gets into."""


@pytest.mark.soak
def test_the_new_records_say_the_same_wherever_an_exploration_gets():
    """In every state of a step that today's records tell apart."""
    many = gather((*MORE, *TESTED), states=250, walks=8)
    check_records(many)
    steps = [step for change in many.changes.values() for step in to_new(change.after).steps]
    kinds = {name_of(kind_of(step.state)) for step in steps}
    assert {state.__name__ for state in STATES} - {"UndoPending"} <= kinds | RARE
    assert len(many.changes) > 1000
