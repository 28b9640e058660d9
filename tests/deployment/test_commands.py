"""The commands of the Makefile that no other test goes through."""

import re
import shutil
import subprocess
import sys

import pytest

from development.servicebus_config import ROOT

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
        ("explore", "waits, faults 0, resubmit 0, threshold 2, alone", "1 worlds, "),
        ("mutants", "--help", "such as SUP-5"),
        ("operator", "--help", "resubmit"),
    ],
)
def test_a_command_does_what_its_name_says(target, arguments, says):
    """It finds all that it imports, and takes what it is told in ARGS."""
    ran = made(target, arguments)
    assert ran.returncode == 0, ran.stderr
    assert says in ran.stdout


@pytest.mark.soak
def test_exploring_nothing_is_no_success():
    """A text that no world has is a mistake."""
    ran = made("explore", "no such world")
    assert ran.returncode != 0
    assert "no such world" in ran.stderr


def test_each_command_is_told_by_help():
    """`make help` has a line for every command, and for nothing else."""
    (names,) = re.findall(r"^\.PHONY: help (.+)$", MAKEFILE, re.MULTILINE)
    assert set(re.findall(r"@echo 'make (\w+) ", MAKEFILE)) == set(names.split())


TOO_OLD = "#!/bin/sh\nexit 1\n"
FITS = """#!/bin/sh
echo "$0 $*" >> asked
if [ "$2" = venv ]; then mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; fi
"""


def set_up(folder, python):
    """What `make` says where a `.venv` is to be made by this Python."""
    for name in ("Makefile", "requirements-dev.txt"):
        shutil.copy(ROOT / name, folder)
    command = ["make", ".venv/.installed", f"PYTHON={program(folder / 'given', python)}"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(("before", "made_anew"), [(TOO_OLD, True), (FITS, False), (None, True)])
def test_an_environment_of_a_python_that_does_not_fit_is_made_anew(tmp_path, before, made_anew):
    """An editor makes one of whatever Python it finds; one that fits is kept."""
    if before:
        program(tmp_path / ".venv/bin/python", before)
        (tmp_path / ".venv/pyvenv.cfg").touch()
    ran = set_up(tmp_path, FITS)
    assert ran.returncode == 0, ran.stderr
    assert ("-m venv .venv" in (tmp_path / "asked").read_text()) == made_anew
    assert ("making .venv" in ran.stdout) == made_anew
    assert (tmp_path / ".venv/.installed").exists()


def test_a_python_that_does_not_fit_is_named(tmp_path):
    """Also where somebody names it, and nothing is made."""
    ran = set_up(tmp_path, TOO_OLD)
    assert ran.returncode != 0
    assert "Missing: Python 3.11, 3.12 or 3.13" in ran.stderr
    assert not (tmp_path / ".venv").exists()
