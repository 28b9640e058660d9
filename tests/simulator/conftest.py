"""The simulated services in memory, and on a table for the tests that need it."""

import pytest

from engine.azure.connections import Connections
from engine.azure.settings import Settings
from engine.azure.tables.transactions import TableTransactions
from simulator.ledger import Ledger
from testkit.memory import of_columns
from tests.support.simulated_world import World
from tests.support.transports import Recorder


@pytest.fixture
def world():
    """All in memory."""
    return World(Ledger(of_columns()))


@pytest.fixture(scope="module")
async def recorder():
    """What the requests to Azurite go through."""
    return Recorder()


@pytest.fixture(scope="module")
async def table(services, recorder):
    """Table `simulator`."""
    connections = Connections(
        Settings.model_validate(services.app_environment()), transport=lambda: recorder
    )
    yield lambda: connections.table("simulator")
    await connections.close()


@pytest.fixture
async def table_ledger(table):
    """The ledger of one host; it may hold what former tests wrote, so each test has an order of its own."""
    return Ledger(TableTransactions(table))


@pytest.fixture(params=["memory", "azurite"])
def ledger(request):
    """The ledger, of either kind."""
    return (
        Ledger(of_columns())
        if request.param == "memory"
        else request.getfixturevalue("table_ledger")
    )
