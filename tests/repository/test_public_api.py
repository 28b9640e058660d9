"""What authors of a business import: it has types for those who are outside of this repository."""

import ast
import os
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import engine.workflow
import testkit

ROOT = Path(__file__).parents[2]
OUTSIDE = ROOT / "tests/data/public_api"
USES, WRONG = OUTSIDE / "uses.py", OUTSIDE / "wrong.py"
PACKAGES = ("engine", "testkit", "tools/functions_alone")


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_says_that_it_has_types(package):
    """Without the marker a type checker looks at nothing of an installed package."""
    assert (ROOT / package / "py.typed").read_bytes() == b""


def test_the_marker_is_installed_with_the_platform():
    """It is data of the package, as it is no module."""
    project = tomllib.loads((ROOT / "tools/functions_alone/pyproject.toml").read_text())
    assert "py.typed" in project["tool"]["setuptools"]["package-data"]["functions_alone"]


@pytest.mark.parametrize(
    "package", [engine.workflow, testkit], ids=lambda package: package.__name__
)
def test_the_example_from_outside_uses_every_public_name(package):
    """So that a name whose type is lost is noticed."""
    [imported] = [
        {name.name for name in node.names}
        for node in ast.walk(ast.parse(USES.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == package.__name__
    ]
    assert imported == set(package.__all__)


def test_the_example_from_outside_can_be_declared():
    """Its business has no fault."""
    declared = runpy.run_path(str(USES))["HOTEL"]
    assert declared.default_workflow == "stay"


def found_from_outside(path, folder):
    """The lines of a module in which a strict type checker finds a fault, and what it prints.

    It finds the packages where it finds those that are installed, and has no configuration of this repository.
    """
    (folder / path.name).write_text(path.read_text())
    (folder / "mypy.ini").write_text("[mypy]\nstrict = true\npython_version = 3.11\n")
    cache = f"--cache-dir={ROOT / '.mypy_cache/outside'}"
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", cache, path.name],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tools")))},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = re.findall(rf"^{path.name}:(\d+): error", ran.stdout, re.MULTILINE)
    return {int(line) for line in lines}, ran


@pytest.mark.soak
def test_a_strict_type_checker_accepts_every_public_name(tmp_path):
    """Without a plugin, and without a word in the code for it."""
    found, ran = found_from_outside(USES, tmp_path)
    assert (found, ran.returncode) == (set(), 0), ran.stdout + ran.stderr


@pytest.mark.soak
def test_a_type_checker_finds_each_wrong_use(tmp_path):
    """In these lines, and nowhere else."""
    found, ran = found_from_outside(WRONG, tmp_path)
    lines = enumerate(WRONG.read_text().splitlines(), 1)
    assert found == {number for number, line in lines if line.endswith("# wrong")}, ran.stdout
