"""Every port twice: in memory, and on Azurite, the local broker and the Event Grid stand-in."""

import pytest
from memory import in_memory
from transports import Recorder

from adapters.azure import connect
from adapters.connections import Connections
from adapters.settings import Settings


@pytest.fixture(scope="module")
async def transport():
    """What the storage requests of the parts on Azurite go through."""
    return Recorder()


@pytest.fixture(scope="module")
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
