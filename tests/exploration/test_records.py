"""What is recorded of every reachable order follows from its records, and their table allows every change."""

import pytest

from engine.domain.derive import changed
from engine.domain.states import STATES
from engine.domain.table import kind_of, name_of
from tests.exploration.sample import MORE, gather
from tests.exploration.table import not_allowed
from tests.exploration.worlds import TESTED


def derived_otherwise(change):
    """What follows otherwise from the order than it is recorded."""
    after, now = change.after, change.entry.at
    stored = after.derived
    if after.updated_at != now:  # an erasure, which moves nothing
        return set()
    derived = changed(change.before, after, now).derived
    compared = {
        "complete_by": (stored.complete_by, derived.complete_by),
        "locked_by": (stored.locked_by, derived.locked_by),
        "not_before": (stored.not_before, derived.not_before),
        "ready_since": (stored.ready_since, derived.ready_since),
        "work items": (
            {item.key for item in stored.work_items},
            {item.key for item in derived.work_items},
        ),
    }
    return {name for name, (was, now) in compared.items() if was != now}


def faults(change):
    found = {f"derived: {name}" for name in derived_otherwise(change)}
    if change.before:
        found |= {*not_allowed(change.before, change.after, change.entry)}
    return found


def check_records(sample):
    """Raise an error with the first change of each kind of fault."""
    found = {}
    for change in sample.changes.values():
        found |= dict.fromkeys(faults(change), change)
    assert found == {}


def test_a_change_keeps_to_the_table():
    """What is recorded follows from the order, and the table allows each change of a step by the event that it had."""
    few = gather(MORE, states=1, walks=3)  # a few courses of each world in which much can happen
    check_records(few)
    assert len(few.changes) > 100


RARE: set[str] = set()
"""States that no world gets into."""


@pytest.mark.soak
def test_a_change_keeps_to_the_table_wherever_an_exploration_gets():
    """In every state of a step."""
    many = gather((*MORE, *TESTED), states=250, walks=8)
    check_records(many)
    steps = [step for change in many.changes.values() for step in change.after.steps]
    kinds = {name_of(kind_of(step.state)) for step in steps}
    assert {state.__name__ for state in STATES} - {"UndoPending"} <= kinds | RARE
    assert len(many.changes) > 1000
