"""The simulated services in memory, and Azurite for the tests that need it."""

import pytest
from azure.core.pipeline.transport import AioHttpTransport
from simulated_world import World

from adapters.connections import Connections
from adapters.ledger import TableLedger
from adapters.memory import MemoryLedger
from adapters.settings import Settings
from adapters.tables import TableTransactions
from local.provision import provision
from local.stack import Stack, StackConfig


@pytest.fixture
def world():
    """All in memory."""
    return World(MemoryLedger())


class Recorder(AioHttpTransport):
    """Notes every request, and can lose the next answers after the service has given them."""

    def __init__(self):
        super().__init__()
        self.requests = []
        self.lose_answers = 0

    async def send(self, request, **options):
        self.requests.append((request.method, request.url))
        response = await super().send(request, **options)
        if self.lose_answers and request.method != "GET":
            self.lose_answers -= 1
            raise ConnectionResetError("the answer was lost")
        return response


@pytest.fixture(scope="session")
async def azurite(tmp_path_factory):
    """Azurite alone, on free ports."""
    stack = Stack(StackConfig.for_tests(tmp_path_factory.mktemp("azurite"), hosts=0))
    try:
        await stack.start_azurite()
        await provision(stack.storage_connection_string)
        yield stack
    finally:
        await stack.azurite.stop()


@pytest.fixture(scope="session")
async def recorder():
    """What the requests to Azurite go through."""
    return Recorder()


@pytest.fixture(scope="session")
async def table(azurite, recorder):
    """Table `simulator`."""
    connections = Connections(Settings.model_validate(azurite.app_environment()), transport=lambda: recorder)
    yield lambda: connections.table("simulator")
    await connections.close()


@pytest.fixture
async def table_ledger(table):
    """The ledger of one host; it may hold what former tests wrote, so each test has an order of its own."""
    return TableLedger(TableTransactions(table))


@pytest.fixture(params=["memory", "azurite"])
def ledger(request):
    """The ledger, of either kind."""
    return MemoryLedger() if request.param == "memory" else request.getfixturevalue("table_ledger")
