"""The table of the soak's slices, and what becomes of a soak test that fails when it runs alone."""

import re
from itertools import chain
from pathlib import Path

import pytest

from development.servicebus_config import ROOT
from tests import slices, soak

FAILS, PASSES = "tests/a/test_a.py::test_fails", "tests/a/test_a.py::test_passes"


def test_each_entry_of_the_table_is_there():
    """A folder, a file, or a function of a file."""
    for entry in chain.from_iterable(slices.SLICES.values()):
        path, _, function = entry.partition("::")
        assert (ROOT / path).exists(), entry
        assert not function or re.search(rf"def {function}\(", (ROOT / path).read_text()), entry


@pytest.mark.parametrize(
    ("test", "found"),
    [
        ("tests/exploration/test_planted.py::test_a[x/y::z]", ["always"]),
        ("tests/browser/test_drill.py::test_a", ["pages"]),
        ("tests/browser_of_old/test_a.py::test_a", []),
        ("tests/unit/test_hold.py::test_a", []),
    ],
)
def test_a_test_is_in_the_slice_that_names_its_folder_or_file(test, found):
    """A longer name that begins alike is another."""
    assert slices.slices_of(test) == found
    assert len(list(slices.faults([test]))) == 1 - len(found)


def test_a_test_in_two_slices_is_a_fault(monkeypatch):
    """Otherwise it would run twice."""
    monkeypatch.setattr(
        slices, "SLICES", {"one": ("tests/a",), "two": ("tests/a/test_a.py::test_fails",)}
    )
    assert len(list(slices.faults([FAILS, PASSES]))) == 1
    assert slices.slices_of(FAILS) == ["one", "two"]


def test_every_slice_has_its_turn():
    """All but those that run always, or in the nightly run alone."""
    found = {slices.chosen(f"{number:040x}") for number in range(20)}
    assert found == set(slices.SLICES) - {slices.ALWAYS, slices.NIGHTLY}


class Results:
    """Stands for pytest's runs: what has failed is noted, as `--note-failures` does it."""

    def __init__(self, failed, *again):
        self.failed, self._again, self.repeated = failed, list(again), []

    def run(self, _, *arguments):
        noted = [each for each in arguments if each.startswith("--note-failures=")]
        if not noted:
            self.repeated.append(arguments[-1])
            return self._again.pop(0)
        if self.failed:
            Path(noted[0].partition("=")[2]).write_text("\n".join(self.failed))
        return not self.failed


@pytest.mark.parametrize(
    ("results", "passed", "flaky"),
    [
        pytest.param(Results([]), True, [], id="nothing failed"),
        pytest.param(Results([FAILS], True), True, [FAILS], id="passes by itself"),
        pytest.param(Results([FAILS], False), False, [], id="fails again"),
        pytest.param(Results([FAILS, PASSES], False, True), False, [PASSES], id="one of two"),
    ],
)
def test_what_fails_alone_has_one_more_chance(results, passed, flaky, capsys):
    """It is named if it then passes; the run fails if any fails twice."""
    assert soak.alone(results, ["--slice=kills"]) == passed
    assert results.repeated == results.failed
    assert re.findall(r"^flaky: (.*)$", capsys.readouterr().out, re.MULTILINE) == flaky


def test_a_run_that_fails_without_a_failed_test_fails():
    """For example if nothing could be collected."""

    class Broken(Results):
        def run(self, *_):
            return False

    assert not soak.alone(Broken([]), [])
