"""What a template would deploy, and what of the app is deployed there."""

import pytest
from bicep_model import Template
from deployed_package import AZURE_PYTHON, PYTHON, build
from deploying import AGENTS, GIVEN, VARIANTS, everything, index

from development.servicebus_config import ROOT
from development.settings import app_settings
from local.ports import Ports


def pytest_collection_modifyitems(config, items):
    """Leave to Azure's Python what runs on no other one."""
    elsewhere = [
        item
        for item in items
        if item.path.name == "test_package_as_in_azure.py" and PYTHON != AZURE_PYTHON
    ]
    items[:] = [item for item in items if item not in elsewhere]
    config.hook.pytest_deselected(items=elsewhere)


@pytest.fixture(scope="session", params=VARIANTS)
def deployed(request):
    """What `azd up` would deploy, with different parameters."""
    return Template(ROOT / "infra/main.bicep", GIVEN | VARIANTS[request.param])


@pytest.fixture(scope="session")
def functions():
    """The triggers of every function of the app, the simulated services' included, as Azure would index them."""
    return index(app_settings(Ports(), "key", "key", AGENTS) | everything(Ports()))


@pytest.fixture(scope="session")
def required_functions():
    """The same without agents that may do without their service, whose addresses are not given, and without simulated services."""
    return index(app_settings(Ports(), "key", "key", AGENTS))


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    """The folder that is deployed."""
    return build(tmp_path_factory.mktemp("built") / "package")
