"""The faults that `make mutants` plants."""

from tests.mutants.copies import ROOT
from tests.mutants.table import MUTANTS


def test_every_fault_can_be_planted_and_is_looked_for_where_the_statement_is_proven():
    """Its place is found in the code as that stands, and each test that is to notice it bears the statement's mark."""
    assert [fault for mutant in MUTANTS for fault in mutant.faults(ROOT)] == []
    assert len({mutant.label for mutant in MUTANTS}) == len(MUTANTS)
