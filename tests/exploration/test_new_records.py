"""The new records say of every reachable order what today's say, and their table allows every change."""

from collections import Counter
from dataclasses import replace

import pytest

from converting import differences, lost, to_new, to_old
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
    Renewed,
    Settled,
    Skipped,
    StepCompleted,
    StepFailed,
    StepStarted,
    StepUndone,
    UndoRequested,
    Withdrawn,
)
from core.life import Direction, StepState
from engine.domain.causes import Code
from engine.domain.derive import changed
from engine.domain.states import AwaitingExternalEvent, Deferred, RequestCancelled, Waiting
from engine.domain.table import TABLE, Event, kind_of, name_of
from engine.domain.work_index import capability_of
from exploration import worlds
from exploration.changes import reached
from exploration.worlds import TESTED

OF_STEP = {
    StepStarted: {Event.START, Event.CONDITION_MET},
    StepCompleted: {Event.COMPLETE},
    StepUndone: {Event.COMPLETE},
    Answered: {Event.EXTERNAL_EVENT},
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
        "lists": (1, sum(item.is_listed for item in derived.work_items)),
        "work items": work_items(stored.agenda, derived, after),
    }
    return {name for name, (was, now) in compared.items() if was != now}


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


def compare(changes):
    """What is lost, follows otherwise or is not allowed, how often; and the states, events and causes seen."""
    wrong, examples, seen, codes, compared = Counter(), {}, Counter(), Counter(), 0
    for change in changes:
        compared += 1
        before = change.before and to_new(change.before)
        after = to_new(change.after)
        found = faults(change, before, after)
        wrong.update(found)
        examples.update((fault, change) for fault in found if fault not in examples)
        seen.update(name_of(kind_of(step.state)) for step in after.steps)
        codes.update(step.cause.code for step in after.steps if step.cause)
    return wrong, examples, seen, codes, compared


def faults(change, before, after):
    back = to_old(after)
    found = {f"lost: {name}" for name in differences(change.after.state, back.state)}
    for old, new in zip(change.after.steps, back.steps, strict=True):
        found |= {f"lost: {name}" for name in lost(old, new)}
    found |= {f"derived: {name}" for name in derived_otherwise(change, before, after)}
    for step in before.steps if before else ():
        then = after.step(step.name)
        if not is_allowed(step, then, events_of(change, step)):
            kinds = " -> ".join(name_of(kind_of(one.state)) for one in (step, then))
            found.add(f"not allowed: {kinds} by {change.entry.event}")
    return found


def test_the_new_records_say_what_todays_say():
    pass
