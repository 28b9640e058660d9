"""The simulated services in memory."""

import pytest

from samples.simulator.ledger import Ledger
from testkit.memory import of_columns
from tests.support.simulated_world import World


@pytest.fixture
def world():
    """All in memory."""
    return World(Ledger(of_columns()))
