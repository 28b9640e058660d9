"""What the template deploys, and what of the app is deployed there."""

import fcntl
import json
import os

import pytest

from development import bicep, snapshots
from development.business import DEPLOYED
from development.settings import app_settings
from functions_alone.ports import Ports
from tests.support.deployed_package import AZURE_PYTHON, PYTHON, build
from tests.support.deployed_resources import deployment
from tests.support.deploying import AGENTS, BUSINESS, VARIANTS, everything, functions_with, index
from tests.support.hooks import SIGNED_IN, Project


def pytest_collection_modifyitems(config, items):
    """Leave to Azure's Python what runs on no other one."""
    elsewhere = [
        item
        for item in items
        if item.path.name == "test_package_as_in_azure.py" and PYTHON != AZURE_PYTHON
    ]
    items[:] = [item for item in items if item not in elsewhere]
    config.hook.pytest_deselected(items=elsewhere)


@pytest.fixture(scope="session")
def contents(tmp_path_factory):
    """The kept snapshots by name; where there is a compiler and the template has changed, new ones."""
    of_another = snapshots.kept(snapshots.SOURCES).get("business", DEPLOYED) != DEPLOYED
    if of_another or snapshots.outdated():
        if program := bicep.find():
            return made_once(program, tmp_path_factory)
        if of_another:
            pytest.skip(f"no snapshots of {DEPLOYED}: {snapshots.COMMAND}, which needs Bicep")
    return {path.stem: snapshots.kept(path.stem) for path in snapshots.KEPT.glob("*.json")}


def made_once(program, tmp_path_factory):
    """Make all snapshots for this run of the tests: the first worker makes them, the others wait."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    made = folder / "snapshots.json"
    with (folder / "snapshots.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            made.write_text(json.dumps(snapshots.make_all(program)))
    return json.loads(made.read_text())


@pytest.fixture(scope="session")
def deployments(contents):
    """What is deployed, by the name of the set."""
    return {name: deployment(name, contents[name]) for name in snapshots.sets(BUSINESS)}


@pytest.fixture(scope="session", params=VARIANTS)
def deployed(request, deployments):
    """What `azd up` deploys, with some parameters."""
    return deployments[request.param]


@pytest.fixture(scope="session", params=snapshots.sets(BUSINESS))
def any_deployed(request, deployments):
    """The same, with each set of parameters and options."""
    return deployments[request.param]


@pytest.fixture(scope="session")
def template(contents):
    """What Azure Resource Manager gets: for dependencies, loops, types of parameters."""
    return contents[snapshots.COMPILED]


@pytest.fixture(scope="session")
def functions():
    """The triggers of every function of the app, the simulated services' included, as Azure would index them."""
    return index(app_settings(Ports(), "key", "key", AGENTS) | everything(Ports()))


@pytest.fixture(scope="session")
def built():
    """What is called of each of these functions."""
    settings = app_settings(Ports(), "key", "key", AGENTS) | everything(Ports())
    return {
        function.get_function_name(): function.get_user_function()
        for function in functions_with(settings)
    }


@pytest.fixture(scope="session")
def required_functions():
    """The same without agents that may do without their service, whose addresses are not given, and without simulated services."""
    return index(app_settings(Ports(), "key", "key", AGENTS))


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    """The folder that is deployed."""
    return build(tmp_path_factory.mktemp("built") / "package")


@pytest.fixture
def project(tmp_path):
    """A project whose azd is signed in."""
    project = Project(tmp_path)
    project.program("azd")
    project.replies([SIGNED_IN])
    return project
