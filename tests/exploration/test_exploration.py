"""Every interleaving of a small world: nothing that must hold is ever broken."""

import pytest

from exploration.explorer import FoundError, explore, replay
from exploration.planted import PLANTED
from exploration.worlds import TESTED, WorldOf


@pytest.mark.parametrize("world", TESTED, ids=str)
@pytest.mark.proves(
    "SCH-2", "SCH-6", "SCH-9", "SUP-4", "SUP-5", "AGT-3", "AGT-4", "AGT-5", "ALR-1", "OPR-6",
    "FLT-1", "FLT-2", "FLT-3", "FLT-4", "FLT-5", "FLT-6", "FLT-7", "FLT-8", "FLT-11",
)  # fmt: skip
def test_nothing_is_broken_in_any_state(world):
    """To closure: however the faults fall, the order ends Processed, or in Error with one alert."""
    with world.running():
        seen = explore(world.beginning())
    assert seen.ends > 0
    print(f"{world}: {seen}")


@pytest.mark.parametrize("label", PLANTED)
def test_a_planted_fault_is_found(label):
    """So the exploration can fail: each fault is caught, with the shortest story that leads to it."""
    plant, world = PLANTED[label]
    with plant(), world.running(), pytest.raises(FoundError) as found:
        explore(world.beginning())
    assert found.value.labels
    print(f"{label}\n{found.value}\n")


def test_a_story_can_be_replayed():
    """What the explorer tells leads to the same state again: here, to an order that ends well after all."""
    story = [
        "submission takes the submission",
        "submission: commits “submitted”",
        "submission: sends the wake: the bus is away",
        "time passes to 08:15:05.000000",
        "scheduler-1 begins to poll",
        "scheduler-1: commits “claimed”",
        "scheduler-1: sends the request",
        "agent-1 takes the request",
        "agent-1: the service does its work",
        "agent-1: sends the reply",
        "scheduler-1 takes the reply",
        "scheduler-1: commits “processed”",
    ]
    world = WorldOf(faults=1)
    with world.running():
        assert replay(world.beginning(), story).state().process_state == "Processed"
        with pytest.raises(LookupError, match="cannot happen here"):
            replay(world.beginning(), [*story, story[0]])
