"""The table of the soak's slices, and what becomes of a soak test that fails when it runs alone."""

import re
from itertools import chain
from pathlib import Path

import pytest
from click.testing import CliRunner

from development.servicebus_config import ROOT
from tests import slices, soak

FAILS, PASSES = "tests/a/test_a.py::test_fails", "tests/a/test_a.py::test_passes"


def test_every_entry_of_the_table_is_there():
    """A folder, a file, or a function of a file."""
    for entry in chain.from_iterable(slices.SLICES.values()):
        path, _, function = entry.partition("::")
        assert (ROOT / path).exists(), entry
        assert not function or re.search(rf"def {function}\(", (ROOT / path).read_text()), entry


@pytest.mark.parametrize(
    ("test", "found"),
    [
        ("tests/exploration/test_seeded_faults.py::test_a[x/y::z]", ["always"]),
        ("tests/browser/test_drill.py::test_a", ["pages"]),
        ("tests/browser_of_old/test_a.py::test_a", []),
        ("tests/app/test_hold.py::test_a", []),
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


def test_what_the_nightly_slice_names_is_in_no_other():
    """Though another slice names its folder."""
    for entry in slices.SLICES[slices.NIGHTLY]:
        assert slices.slices_of(f"{entry}[1]") == [slices.NIGHTLY]


def test_every_slice_has_its_turn():
    """All but those that run always, or in the nightly run alone."""
    found = {slices.chosen(f"{number:040x}") for number in range(20)}
    assert found == set(slices.SLICES) - {slices.ALWAYS, slices.NIGHTLY}


class Results:
    """Stands for pytest's runs: what has failed is noted, as `--note-failures` does it."""

    def __init__(self, failed, *again, code=None, last=slices.FINISHED):
        self.failed, self._again, self.repeated = failed, list(again), []
        self._code, self._last = (1 if failed else 0) if code is None else code, last

    def run(self, _, *arguments):
        noted = [argument for argument in arguments if argument.startswith("--note-failures=")]
        if not noted:
            self.repeated.append(arguments[-1])
            return self._again.pop(0)
        Path(noted[0].partition("=")[2]).write_text("\n".join([*self.failed, self._last]))
        return self._code


@pytest.mark.parametrize(
    ("results", "code", "flaky"),
    [
        pytest.param(Results([]), 0, [], id="nothing failed"),
        pytest.param(Results([], code=5), 5, [], id="no test is marked so"),
        pytest.param(Results([FAILS], 0), 0, [FAILS], id="passes by itself"),
        pytest.param(Results([FAILS], 1), 1, [], id="fails again"),
        pytest.param(Results([FAILS], 5), 1, [], id="is not found again"),
        pytest.param(Results([FAILS, PASSES], 1, 0), 1, [PASSES], id="one of two"),
    ],
)
def test_what_fails_alone_is_repeated_once(results, code, flaky, capsys):
    """It is named if it then passes; the run fails if any fails twice."""
    assert soak.alone(results, ["--slice=kills"]) == code
    assert results.repeated == results.failed
    assert re.findall(r"^flaky: (.*)$", capsys.readouterr().out, re.MULTILINE) == flaky


@pytest.mark.parametrize(
    "results",
    [
        pytest.param(Results([FAILS], code=3), id="an internal error"),
        pytest.param(Results([FAILS], last=PASSES), id="it ended in the middle"),
        pytest.param(Results([], code=1, last=""), id="nothing was noted"),
    ],
)
def test_a_run_that_breaks_off_fails(results):
    """Though what had failed before would pass now."""
    assert soak.alone(results, []) not in (0, 5)
    assert results.repeated == []


class Codes:
    """Stands for pytest's runs, whose exit codes come in this order."""

    def __init__(self, *codes):
        self._codes = list(codes)

    def run(self, *_, **__):
        return self._codes.pop(0)

    def report(self):
        pass


@pytest.mark.parametrize(
    ("names", "codes", "exit_code"),
    [
        (["kills"], [5, 0], 0),
        (["always"], [0, 5], 0),
        (["kills"], [5, 5], 1),
        (["pages"], [1, 0], 1),
        (["pages"], [0, 2], 1),
        (["platform"], [0, 0, 0], 0),
        (["platform"], [0, 0, 5], 1),
        (["platform"], [0, 0, 1], 1),
    ],
)
def test_a_run_in_which_nothing_ran_is_no_success(names, codes, exit_code, monkeypatch):
    """A slice may have no test of one kind, but not of both."""
    monkeypatch.setattr(soak, "Parts", lambda: Codes(*codes))
    assert CliRunner().invoke(soak.main, names).exit_code == exit_code
