"""Another business is deployed instead of the shop: nothing that is checked or tested needs the shop to be deployed.

The claims of the examples, whose bank wants a token; in the soak also a car rental of five agents, more than
Microsoft's emulator has room for.
"""

import pytest
from another_business import run, with_claims, with_rental

WHAT_IS_DEPLOYED = (
    "deploying",
    "function_app",
    "development.business",
    "development.declared",
    "shop",
)
"""By these words a unit test reaches it; all the others are for the soak."""
NOT_ABOUT_IT = ("bicep", "budget", "commands", "new_business", "package_as_sent", "sign_in")
"""Tests of a deployment that are about commands and platforms, and not about what is deployed; for the soak too."""
LONG = ("at_the_door", "pages", "simulation")
"""Unit tests that take long and name the shop for something else."""

ITSELF = "--ignore=tests/deployment/test_another_business.py"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """The repository with claims deployed."""
    return with_claims(tmp_path_factory.mktemp("another") / "tree")


def test_every_check_passes(root):
    """What `make check` runs of Python: lint, types, import rules, statements of the pattern, what is written."""
    run(root, "-m", "ruff", "check", ".")
    run(root, "-m", "ruff", "format", "--check", ".")
    assert "claims knows neither roles" in run(root, "-m", "development.checks")
    run(root, "-m", "tests.pattern", "--brief")
    assert run(root, "-m", "development.declared") == ""


def test_what_is_deployed_is_the_other_one(root):
    """Each file that names agents names those of the claims, and none of the shop's."""
    asked = "from deploying import AGENTS; print(*(agent.name for agent in AGENTS))"
    names = run(
        root,
        "-c",
        f"import sys; sys.path[:0] = ['tests', 'tests/support', 'local/tests/support']; {asked}",
    )
    assert names.split() == ["assessor", "bank"]
    for place in ("infra/simulated.json", "infra/hooks/services.txt"):
        assert "ASSESSOR" in (root / place).read_text()
        assert "PAYMENT" not in (root / place).read_text()
    assert "value required BANK_SECRET" in (root / "infra/hooks/services.txt").read_text()


def test_unit_and_deployment_tests_pass(root):
    """All that what is deployed could reach, but this one."""
    left_out = [f"--ignore=tests/deployment/test_{name}.py" for name in NOT_ABOUT_IT]
    tests = [*reached(root), "tests/deployment", ITSELF, *left_out]
    assert "passed" in run(root, "-m", "pytest", "-n", "0", *tests)


def reached(root):
    """The unit tests that name what is deployed, or what makes it, but for the long ones."""
    files = (root / "tests/unit").glob("test_*.py")
    quick = (file for file in files if file.stem.removeprefix("test_") not in LONG)
    return [file for file in quick if any(word in file.read_text() for word in WHAT_IS_DEPLOYED)]


@pytest.mark.soak
def test_the_package_of_the_other_one_does_all_its_work(root):
    """Its orders end, fail and go on; its roles and what is provisioned are what it uses, and nothing else."""
    at_work = "tests/deployment/test_package_at_work.py"
    assert "passed" in run(root, "-m", "pytest", "-n", "0", "-m", "soak", at_work)


@pytest.mark.soak
@pytest.mark.alone
def test_all_other_tests_pass(root):
    """On the whole system too, whose tests run on the shop."""
    assert "passed" in run(root, "-m", "pytest", "-n", "4", "tests", ITSELF)


@pytest.fixture(scope="module")
def rental(tmp_path_factory):
    """The repository with the car rental deployed."""
    return with_rental(tmp_path_factory.mktemp("rental") / "tree")


@pytest.mark.soak
@pytest.mark.alone
def test_the_checks_and_the_quick_tests_pass_with_many_agents(rental):
    """Those of units, contracts, fuzz, simulator and deployment."""
    assert run(rental, "-m", "development.declared") == ""
    run(rental, "-m", "ruff", "check", ".")
    assert "rental knows neither roles" in run(rental, "-m", "development.checks")
    tests = [f"tests/{name}" for name in ("unit", "contract", "fuzz", "simulator", "deployment")]
    assert "passed" in run(rental, "-m", "pytest", "-n", "2", *tests, ITSELF)
