"""Every port twice: in memory, and on Azurite, the local broker and the Event Grid stand-in."""

import pytest

from engine.azure.connect import connect
from engine.azure.connections import Connections
from engine.azure.settings import Settings
from testkit.memory import in_memory
from tests.support.apps import app
from tests.support.transports import Recorder


@pytest.fixture(scope="module")
async def transport():
    """What the storage requests of the app on Azurite go through."""
    return Recorder()


@pytest.fixture(scope="module")
async def on_azurite(services, transport):
    """The app on the real services."""
    settings = Settings.model_validate(services.app_environment())
    parts = connect(settings, Connections(settings, transport=lambda: transport))
    yield app(parts)
    await parts.close()


@pytest.fixture(params=["memory", "azurite"])
def made(request):
    """The app, on parts of either kind."""
    return app(in_memory()) if request.param == "memory" else request.getfixturevalue("on_azurite")
