"""The exploration can fail: each seeded fault is found, and each drift of an explanation from the rules."""

import re
from dataclasses import replace
from unittest.mock import patch

import pytest

from operations.api import prospects
from operations.api.prospects import what_comes
from scheduler.service import WAKE_UP_TIME
from testkit.exploration.explorer import FoundError, explore
from tests.exploration import judge
from tests.exploration.judge import Judge, acting_rules
from tests.exploration.seeded_faults import MESSAGE_OF, SEEDED_FAULTS
from tests.exploration.worlds import NOW, TOLERANCE, TRIED_AGAIN

pytestmark = pytest.mark.soak
"""Like `make mutants`, it is about the tests, and not about the app."""

NO_FAULT = ("TypeError", "AttributeError", "NameError", "UnboundLocalError")
"""What goes wrong when the fault does not fit the code any more, and nothing is found."""


@pytest.mark.parametrize("label", SEEDED_FAULTS)
def test_a_seeded_fault_is_found(label):
    """Each is caught in its world, with the shortest trace that leads to it."""
    seed, world = SEEDED_FAULTS[label]
    with seed(), world.running(), pytest.raises(FoundError) as found:
        explore(world.beginning(), world.bounds())
    assert not any(fault in found.value.violation for fault in NO_FAULT)
    assert re.search(MESSAGE_OF.get(label, ""), found.value.violation)
    print(f"{label}\n{found.value}\n")


def a_rule_changed(name, change):
    """The acting rules as they were before somebody changed them elsewhere: what drift would look like."""
    return patch.object(
        judge, "acting_rules", lambda *health: replace(acting_rules(*health), **{name: change})
    )


DRIFTS = {
    "the poll comes sooner": lambda: a_rule_changed("poll_delay", WAKE_UP_TIME / 2),
    "the supervisor is more patient": lambda: a_rule_changed("clock_tolerance", TOLERANCE * 2),
    "the supervisor counts otherwise": lambda: a_rule_changed(
        "recover", lambda order, now, health: None
    ),
    "the scheduler waits": lambda: a_rule_changed(
        "claim", lambda order, now, capacity, silent: None
    ),
    "an agent has longer": lambda: patch.object(
        prospects,
        "what_comes",
        lambda *args: replace(found, at=NOW) if (found := what_comes(*args)) else None,
    ),
}


@pytest.mark.parametrize("label", DRIFTS)
def test_an_explanation_that_drifts_from_the_rules_is_found(label):
    """So what is said to be explained can be wrong."""
    with DRIFTS[label](), TRIED_AGAIN.running(), pytest.raises(FoundError):
        explore(TRIED_AGAIN.beginning(), watch=Judge().watch)
