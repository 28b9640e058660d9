"""The faults that `make mutants` seeds, and the mutants that it lets survive."""

import importlib

import pytest
import yaml

from tests.exploration.seeded_faults import SEEDED_FAULTS
from tests.exploration.test_differential import CHANGED
from tests.mutants.__main__ import TABLE
from tests.mutants.copies import ROOT
from tests.mutants.generated import MODULES, change_of, chosen, listed
from tests.mutants.table import MUTANTS

DIFF = """--- a
+++ b
@@ -1,2 +1,2 @@
 def f(a):
-    return g(a, limit <= 2)
+    return g(a, limit < 2)
"""


def test_every_fault_can_be_seeded_and_is_looked_for_where_the_statement_is_proven():
    """Its place is in the code as it stands, and each of its tests bears the statement's mark."""
    assert [fault for mutant in MUTANTS for fault in mutant.faults(ROOT)] == []
    assert len({mutant.label for mutant in MUTANTS}) == len(MUTANTS)


def test_every_change_that_the_differential_run_has_to_notice_can_be_made():
    """The run itself is a part of the soak."""
    assert [fault for change in CHANGED for fault in change.faults(ROOT)] == []


@pytest.mark.parametrize("label", SEEDED_FAULTS)
def test_every_fault_that_the_exploration_has_to_find_can_be_seeded(label):
    """What it replaces is there; the exploration itself is a part of the soak."""
    seed, _ = SEEDED_FAULTS[label]
    with seed():
        pass


def test_every_survivor_that_is_listed_is_one_of_a_function_that_is_there():
    """With a change of its own."""
    for survivor in listed():
        module = next(
            candidate for candidate in MODULES if survivor.function.startswith(f"{candidate}.")
        )
        found = importlib.import_module(module)
        for name in survivor.function.removeprefix(f"{module}.").split("."):
            found = getattr(found, name)


def test_a_change_is_described_in_the_fewest_words():
    """What surrounds it may change without that."""
    assert change_of(DIFF) == "<= -> <"


def test_the_nightly_run_covers_everything_once():
    """Every module that is mutated, and the table."""
    workflow = yaml.safe_load((ROOT / ".github/workflows/checks.yml").read_text())
    parts = workflow["jobs"]["mutants"]["strategy"]["matrix"]["part"]
    modules = [module for part in parts for module in chosen(part.split())]
    assert sorted(modules) == sorted(MODULES)
    assert parts.count(TABLE) == 1


def test_a_part_is_a_package_or_a_module():
    """And nothing else is one."""
    assert chosen(["engine.domain.submitted_order", "scheduler"]) == [
        "engine.domain.submitted_order",
        "scheduler.admission.__init__",
        "scheduler.admission.adaptive",
        "scheduler.admission.admission",
        "scheduler.admission.claim_queue",
        "scheduler.admission.health",
        "scheduler.admission.open_requests",
        "scheduler.admission.policy",
        "scheduler.rules",
    ]
    assert chosen(["SUP-5", "table", "cor"]) == []
