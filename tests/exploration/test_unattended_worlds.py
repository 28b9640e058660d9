"""Every state of every small world in which what goes wrong, or differs, is the point: nothing is ever broken."""

import pytest

from engine.domain.orders import Processed
from testkit.exploration.explorer import replay
from tests.exploration.closure import explored_to_closure, worlds_as_parameters
from tests.exploration.worlds import LARGE, LARGEST, UNATTENDED, WorldOf


@pytest.mark.parametrize("world", worlds_as_parameters(UNATTENDED))
def test_nothing_is_broken_in_any_state(world):
    """To closure: however the faults fall, the order ends Processed, or in Error with one alert."""
    explored_to_closure(world, UNATTENDED[world])


@pytest.mark.soak
@pytest.mark.parametrize("world", worlds_as_parameters(LARGE))
def test_nothing_is_broken_in_any_state_of_a_large_world(world):
    """The same, where it takes long."""
    explored_to_closure(world, LARGE[world])


@pytest.mark.soak
@pytest.mark.parametrize("world", worlds_as_parameters(LARGEST))
def test_nothing_is_broken_in_any_state_of_a_largest_world(world):
    """The same, where it takes longest: in the nightly run alone."""
    explored_to_closure(world, LARGEST[world])


def test_a_story_can_be_replayed():
    """What the explorer tells leads to the same state again: here, to an order that ends well after all."""
    trace = [
        "submission takes the submission",
        "submission: commits “submitted”",
        "submission: sends the wake: the bus is away",
        "time passes to 08:15:02.000000",
        "scheduler-1 begins to poll",
        "scheduler-1: commits “claimed”",
        "scheduler-1: sends the request",
        "agent-1 takes the request",
        "agent-1: says what it begins",
        "agent-1: the service does its work",
        "agent-1: sends the reply",
        "scheduler-1 takes the reply",
        "scheduler-1: commits “processed”",
    ]
    world = WorldOf(faults=1)
    with world.running():
        assert replay(world.beginning(), trace).order().state == Processed()
        with pytest.raises(LookupError, match="cannot happen here"):
            replay(world.beginning(), [*trace, trace[0]])
