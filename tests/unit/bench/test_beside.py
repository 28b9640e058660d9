"""Two programs in turns."""

import json
import shlex
import sys

import pytest

from bench.__main__ import _without
from bench.beside import NoFiguresError, alternating

# Each run appends to a file who ran, and prints the next of its figures.
PROGRAM = """
import json, sys
path, name, *figures = sys.argv[1:]
with open(path, "a") as file: file.write(name)
number = open(path).read().count(name) - 1
print("some words")
print(json.dumps({"orders_per_s": float(figures[number]), "valid": True, "each": {"lost": 0}, "peer": name}))
"""


def program(path, name, *figures):
    return [sys.executable, "-c", PROGRAM, str(path), name, *map(str, figures)]


def test_what_runs_first_changes_and_ratios_are_those_of_pairs(tmp_path):
    """So neither has the warmer machine; the median of ratios, not the ratio of medians."""
    path, said = tmp_path / "ran", []
    own, other = program(path, "a", 20, 60, 30), shlex.join(program(path, "b", 10, 20, 30))
    found = alternating(own, other, 3, said.append)
    assert path.read_text() == "abbaab"
    assert (found["beside"], found["pairs"], len(said)) == (other, 3, 6)
    assert found["figures"] == {
        "orders_per_s": {"own": 30, "other": 20, "ratio": 2, "least": 1, "most": 3},
        "each.lost": {"own": 0, "other": 0, "ratio": None, "least": None, "most": None},
    }
    json.dumps(found)


@pytest.mark.parametrize("other", ["false", "echo", "echo words", "echo [1]", "echo {}; exit 1"])
def test_a_program_without_figures_is_named(tmp_path, other):
    with pytest.raises(NoFiguresError, match=other.partition(";")[0].replace("[1]", ".1.")):
        alternating(program(tmp_path / "ran", "a", 1), other, 1, lambda _: None)


def test_the_runs_beside_have_the_options_that_were_given():
    given = ["--shape", "one", "--beside", "x --pairs 3", "--orders=9", "--pairs=2"]
    assert list(_without(given, "--beside", "--pairs")) == ["--shape", "one", "--orders=9"]
