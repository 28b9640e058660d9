"""What a test of a world demands of it."""

import pytest

from testkit.exploration.explorer import explore
from tests.exploration import table
from tests.exploration.judge import Judge
from tests.exploration.seeded_faults import SEEDED_FAULTS
from tests.exploration.worlds import HAPPENS


def worlds_as_parameters(worlds):
    """The worlds as parameters of a test, each marked with what it is about, and what a seeded fault breaks in it."""
    return [
        pytest.param(
            world, marks=pytest.mark.proves(*sorted({*about, *broken_in(world)})), id=str(world)
        )
        for world, about in worlds.items()
    ]


def broken_in(world):
    """The statements of which a seeded fault is found in this world."""
    return (
        label.partition(" ")[0] for label, (_, small) in SEEDED_FAULTS.items() if small == world
    )


def explored_to_closure(world, about):
    """Go through every state: nothing is broken, what the world is about happens, and explanations come true.

    The table of states and events has a row for each change of a step.
    """
    failures = set(about)
    judge = Judge() if "OPR-2" in failures else None
    failures.discard("OPR-2")

    def watch(world, following):
        table.watch(world, following)
        if judge:
            judge.watch(world, following)

    with world.running():
        seen = explore(world.beginning(), world.bounds(), watch=watch)
    assert seen.whole
    assert seen.ends > 0
    assert [
        what for failure in failures for what in HAPPENS[failure] if not seen.happened(what)
    ] == []
    print(f"{world}: {seen}")
    if judge:
        print(f"{judge.transitions} transitions foreseen, {judge.silences} silences")
        assert judge.transitions > 50
        assert judge.silences > 20
