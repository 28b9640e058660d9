"""What a template would deploy, and what the package asks of Azure's services while it runs."""

import asyncio
import re

import pytest
from bicep_model import Template
from client import QUICK, Client, eventually
from deploying import GIVEN, VARIANTS, AtWork, call_every_route, do_everything, everything, in_time, index
from packaging import AZURE_PYTHON, PYTHON, DeployedStack, build, clean_python, tools
from recording import calls_in

from local.ports import Ports
from local.servicebus_config import ROOT
from local.settings import app_settings
from local.stack import StackConfig

OFTEN = {"WATCH_SCHEDULE": "* * * * * *", "FAILURE_THRESHOLD": "20"}
"""Timers come soon, and no order is given up because the machine is slow."""
collect_ignore = [] if PYTHON == AZURE_PYTHON else ["test_package_as_in_azure.py"]


@pytest.fixture(scope="session", params=VARIANTS)
def deployed(request):
    """What `azd up` would deploy, with different parameters."""
    return Template(ROOT / "infra/main.bicep", GIVEN | VARIANTS[request.param])


@pytest.fixture(scope="session")
def functions():
    """The triggers of every function of the app, the simulated services' included, as Azure would index them."""
    return index(app_settings(Ports(), "key", "key") | everything(Ports()))


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    """The folder that is deployed."""
    return build(tmp_path_factory.mktemp("built") / "package")


@pytest.fixture(scope="session")
async def at_work(package, functions, tmp_path_factory):
    """What the package did, on a clean Python, when it had to do everything that it can do."""
    data, calls = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("calls")
    ports = Ports.free()
    settings = QUICK | everything(ports) | OFTEN | {"CALLS_FOLDER": str(calls)}
    config = StackConfig.for_tests(data, ports=ports, settings=settings, app=package)
    python = await asyncio.to_thread(clean_python)
    async with DeployedStack(config, python, tools(tmp_path_factory.mktemp("tools"))) as stack:

        def ran():
            return set(re.findall(r"function (\w+) succeeded", stack.hosts[0].output()))

        async def all_ran():
            assert in_time(functions) <= ran()
            return ran()

        client = Client(stack)
        try:
            await do_everything(stack, client)
            await call_every_route(client, functions)
            succeeded = await eventually(all_ran)
        finally:
            await client.close()
    return AtWork(succeeded, calls_in(calls))
