"""What a template would deploy, and what the running app asks of Azure's services."""

from pathlib import Path

import pytest
from bicep_model import Template
from client import QUICK, Client
from deploying import GIVEN, VARIANTS, do_everything, everything, index
from recording import calls_in

from local.ports import Ports
from local.servicebus_config import ROOT
from local.settings import app_settings
from local.stack import Stack, StackConfig


@pytest.fixture(scope="session", params=VARIANTS)
def deployed(request):
    """What `azd up` would deploy, with different parameters."""
    return Template(ROOT / "infra/main.bicep", GIVEN | VARIANTS[request.param])


@pytest.fixture(scope="session")
async def calls(tmp_path_factory):
    """Every call of the app and its host to Azure's services while it does everything that it can do."""
    folder = tmp_path_factory.mktemp("calls")
    ports = Ports.free()
    config = StackConfig.for_tests(
        tmp_path_factory.mktemp("recorded"),
        ports=ports,
        settings=QUICK | everything(ports) | {"CALLS_FOLDER": str(folder)},
        app=Path(__file__).parent / "app",
    )
    async with Stack(config) as stack:
        client = Client(stack)
        try:
            await do_everything(stack, client)
        finally:
            await client.close()
    return calls_in(folder)


@pytest.fixture(scope="session")
def functions():
    """The triggers of every function of the app, the simulated services' included, as Azure would index them."""
    return index(app_settings(Ports(), "key", "key") | everything(Ports()))
