"""Another business is deployed instead of the shop: nothing that is checked or tested needs the shop to be deployed.

The claims of the examples, whose bank wants a token, and a car rental of five agents, more than Microsoft's emulator
has room for. What type checks cost without their cache is for the soak.
"""

import json

import pytest

from development.servicebus_config import AGENTS_FILE
from tests.support.another_business import readers_of_deployed, run, with_claims, with_rental

ITSELF = "--ignore=tests/deployment/test_another_business.py"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """The repository with claims deployed."""
    return with_claims(tmp_path_factory.mktemp("another") / "tree")


@pytest.mark.soak
def test_every_check_passes(root):
    """What `make check` runs of Python: lint, types, import rules, what is written."""
    run(root, "-m", "ruff", "check", ".")
    run(root, "-m", "ruff", "format", "--check", ".")
    assert "claims knows neither roles" in run(root, "-m", "development.checks")
    assert run(root, "-m", "development.declared") == ""


@pytest.mark.soak
def test_what_is_deployed_is_the_other_one(root):
    """Each file that names agents names those of the claims, and none of the shop's."""
    code = "from tests.support.deploying import AGENTS; print(*(agent.name for agent in AGENTS))"
    names = run(root, "-c", code)
    assert names.split() == ["assessor", "bank"]
    written = (root / AGENTS_FILE).read_text()
    assert "ASSESSOR" in written
    assert "PAYMENT" not in written
    secret = {"name": "BANK_SECRET", "kind": "value", "required": True, "secret": True}
    assert secret in json.loads(written)["settings"]


@pytest.mark.soak
def test_the_package_of_the_other_one_does_all_its_work(root):
    """Its orders end, fail and go on; its roles and what is provisioned are what it uses, and nothing else."""
    at_work = "tests/deployment/test_package_at_work.py"
    assert "passed" in run(root, "-m", "pytest", "-n", "0", "-m", "soak", at_work)


@pytest.mark.soak
def test_what_reads_the_business_passes(root):
    """Every test that looks at the deployed business; every statement of the pattern still has a test."""
    run(root, "-m", "tests.pattern", "--brief")
    passes(root, *readers_of_deployed(root))


@pytest.fixture(scope="module")
def rental(tmp_path_factory):
    """The repository with the car rental deployed."""
    return with_rental(tmp_path_factory.mktemp("rental") / "tree")


@pytest.mark.soak
def test_what_reads_the_business_passes_with_many_agents(rental):
    """The checks of Python too."""
    assert run(rental, "-m", "development.declared") == ""
    run(rental, "-m", "ruff", "check", ".")
    run(rental, "-m", "development.checks")
    passes(rental, *readers_of_deployed(rental))


def passes(root, *tests):
    assert tests
    run(root, "-m", "pytest", "-n", "2", *tests, ITSELF)
