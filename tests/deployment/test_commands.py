"""The commands of the Makefile that no other test goes through."""

import re
import subprocess
import sys

import pytest

from local.servicebus_config import ROOT

MAKEFILE = (ROOT / "Makefile").read_text()


def made(target, arguments):
    """What a command prints, with the environment that the tests run in; nothing is installed."""
    stamps = [
        f"--old-file={stamp}"
        for stamp in (f"{sys.prefix}/.installed", "local/node_modules/.installed")
    ]
    command = ["make", *stamps, target, f"VENV={sys.prefix}", f"ARGS={arguments}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("target", "arguments", "says"),
    [
        ("bench", "--help", "one JSON line"),
        ("explore", "pair, faults 0, cancel 1, threshold 2, what", "1 worlds, "),
        ("mutants", "--help", "such as SUP-5"),
        ("operator", "--help", "resubmit"),
    ],
)
def test_a_command_does_what_its_name_says(target, arguments, says):
    """It finds all that it imports, and takes what it is told in ARGS."""
    ran = made(target, arguments)
    assert ran.returncode == 0, ran.stderr
    assert says in ran.stdout


def test_exploring_nothing_is_no_success():
    """A text that no world has is a mistake."""
    ran = made("explore", "no such world")
    assert ran.returncode != 0
    assert "no such world" in ran.stderr


def test_each_command_is_told_by_help():
    """`make help` has a line for every command, and for nothing else."""
    (names,) = re.findall(r"^\.PHONY: help (.+)$", MAKEFILE, re.MULTILINE)
    assert set(re.findall(r"@echo 'make (\w+) ", MAKEFILE)) == set(names.split())
