"""Every port twice: in memory, and on Azurite, the local broker and the Event Grid stand-in."""

import pytest
from azure.core.pipeline.transport import AioHttpTransport

from adapters.azure import connect
from adapters.connections import Connections
from adapters.memory import in_memory
from adapters.settings import Settings
from local.stack import Stack, StackConfig


class CountingTransport(AioHttpTransport):
    """Counts requests, and can lose an answer after the service has given it."""

    def __init__(self):
        super().__init__()
        self.count = 0
        self.lose_answers = 0

    async def send(self, request, **options):
        self.count += 1
        response = await super().send(request, **options)
        if self.lose_answers and request.method != "GET":
            self.lose_answers -= 1
            raise ConnectionResetError("the answer was lost")
        return response


@pytest.fixture(scope="session")
async def services(tmp_path_factory):
    """Azurite, the broker and the Event Grid stand-in, without any functions host."""
    async with Stack(StackConfig.for_tests(tmp_path_factory.mktemp("services"), hosts=0)) as stack:
        yield stack


@pytest.fixture(scope="session")
async def transport():
    """What the storage requests of the parts on Azurite go through."""
    return CountingTransport()


@pytest.fixture(scope="session")
async def on_azurite(services, transport):
    """All parts on the real services."""
    settings = Settings.model_validate(services.app_environment())
    parts = connect(settings, Connections(settings, transport=lambda: transport))
    yield parts
    await parts.close()


@pytest.fixture(params=["memory", "azurite"])
def parts(request):
    """All parts, of either kind."""
    return in_memory() if request.param == "memory" else request.getfixturevalue("on_azurite")
