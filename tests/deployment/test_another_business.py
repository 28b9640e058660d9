"""Another business is deployed instead of the shop: nothing that is checked or tested needs the shop to be deployed."""

import pytest
from another_business import run, with_claims

from local.servicebus_config import ROOT

LONG = ("many_processes", "fair_scheduling", "pages", "simulation", "bench", "agents_away", "at_the_door",
        "poisoned_neighbours", "mutants", "outages")  # fmt: skip
"""Unit tests that take long, and that nothing of a deployment reaches; the soak runs them too."""


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """The repository with claims deployed."""
    return with_claims(tmp_path_factory.mktemp("another") / "tree")


def test_every_check_passes(root):
    """What `make check` runs of Python: lint, types, import rules, statements of the pattern, what is written."""
    run(root, "-m", "ruff", "check", ".")
    run(root, "-m", "ruff", "format", "--check", ".")
    assert "claims knows neither roles" in run(root, "-m", "local.checks")
    run(root, "-m", "tests.pattern", "--brief")
    assert run(root, "-m", "local.declared") == ""


def test_what_is_deployed_is_the_other_one(root):
    """Each file that names agents names those of the claims, and none of the shop's."""
    asked = "from deploying import AGENTS; print(*(agent.name for agent in AGENTS))"
    names = run(root, "-c", f"import sys; sys.path[:0] = ['tests', 'tests/support']; {asked}")
    assert names.split() == ["assessor", "bank"]
    for place in ("infra/simulated.json", "infra/hooks/services.txt"):
        assert "PAYMENT" not in (root / place).read_text()
        assert "PAYMENT" in (ROOT / place).read_text()


def test_unit_and_deployment_tests_pass(root):
    """All but those that are long, and this one."""
    left_out = [f"--ignore=tests/unit/test_{name}.py" for name in LONG]
    itself = "--ignore=tests/deployment/test_another_business.py"
    said = run(root, "-m", "pytest", "-n", "0", "tests/unit", "tests/deployment", itself, *left_out)
    assert "passed" in said


@pytest.mark.soak
def test_the_package_of_the_other_one_does_all_its_work(root):
    """Its orders end, fail and go on; its roles and what is provisioned are what it uses, and nothing else."""
    at_work = "tests/deployment/test_package_at_work.py"
    assert "passed" in run(root, "-m", "pytest", "-n", "0", "-m", "soak", at_work)


@pytest.mark.soak
def test_all_other_tests_pass(root):
    """On the whole system too, whose tests run on the shop."""
    itself = "--ignore=tests/deployment/test_another_business.py"
    assert "passed" in run(root, "-m", "pytest", "-n", "4", "tests", itself)
