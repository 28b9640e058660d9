"""What `make pattern` finds wrong with what the tests say they prove."""

from pathlib import Path

from tests.pattern import STATEMENT, faults, table, texts

PAGE = Path(__file__).parents[2] / "docs/pattern.md"

BOTH = {"tests/system/test_a.py::test_a", "tests/exploration/test_b.py::test_b"}


def test_nothing_is_wrong_where_every_statement_has_its_tests():
    """A failure mode has one on the running system and one in the exploration; others have any."""
    tests = {"SCH-1": {"tests/unit/test_c.py::test_c"}, "FLT-1": BOTH}
    laws = {"SCH-1": ["finds_all, in every state"]}
    assert list(faults(["SCH-1", "FLT-1"], tests, laws)) == []
    says = {"SCH-1": "Finds orders.", "OPR-5": "Acts."}
    assert list(table(["SCH-1", "OPR-5"], tests, says, laws)) == [
        "SCH-1   Finds orders.",
        "        proven by 1",
        "          tests/unit/test_c.py::test_c",
        "        law finds_all, in every state",
        "OPR-5   Acts.",
        "        not proven",
    ]


def test_the_list_says_what_every_statement_says():
    """Whole, also where several share a paragraph (newcomer C, `make pattern`)."""
    page = "# A\n\n- AGT-1 One agent\n  a service (SCH-2).\n- FLT-1 down; slow; FLT-2 dies;\n  FLT-3 late.\n"
    assert texts(page) == {
        "AGT-1": "One agent a service (SCH-2).",
        "FLT-1": "down; slow",
        "FLT-2": "dies",
        "FLT-3": "late.",
    }
    assert texts(PAGE.read_text()).keys() == set(STATEMENT.findall(PAGE.read_text()))
    for line in table(["AGT-1"], {}, {"AGT-1": "word " * 100}, {}):
        assert len(line) <= 100


def test_what_is_missing_or_claimed_wrongly_is_named():
    """Each kind of fault with the statements that it concerns."""
    system, exploration = sorted(BOTH, reverse=True)
    tests = {"FLT-2": {system}, "FLT-10": {exploration}, "SCH-99": {system}}
    laws = {"SCH-98": ["finds_nothing, in every state"]}
    assert list(faults(["SCH-1", "FLT-2", "FLT-10"], tests, laws)) == [
        "without a test: SCH-1",
        "named by tests, but no rule: SCH-99",
        "named by laws, but no rule: SCH-98",
        "failure modes without a test on the running system: FLT-10",
        "failure modes without a test in the exploration: FLT-2",
    ]
