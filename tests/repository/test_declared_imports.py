"""What deptry cannot see: which package of Azure's an import needs, and whether it looks at what is deployed."""

import ast
import os
import re
import tomllib
from pathlib import Path, PurePosixPath

import pytest

from tests.support.deployed_package import ignored

ROOT = Path(__file__).parents[2]
PLATFORM = ROOT / "tools/functions_alone"
COMMANDS = {"engine/workflow/__main__.py"} | {
    str(path.relative_to(ROOT)) for path in (ROOT / "operations/cli").rglob("*.py")
}
"""Deployed with the rest, but run by authors and operators, with the group `local`."""


def project(folder):
    """Read the `pyproject.toml` of a folder."""
    return tomllib.loads((folder / "pyproject.toml").read_text())


def modules(folder):
    """Yield the paths of the modules in a folder, without what is installed there."""
    for parent, inner, names in os.walk(folder):
        inner[:] = [name for name in inner if not name.startswith(".") and name != "node_modules"]
        at = Path(parent).relative_to(folder)
        yield from (str(at / name) for name in names if name.endswith(".py"))


def scanned(folder):
    """Return the modules that deptry reads in a folder."""
    excluded = re.compile("|".join(project(folder)["tool"]["deptry"]["exclude"]))
    return {path for path in modules(folder) if not excluded.match(path)}


def imported(path):
    """Yield the full name of each module that a file imports, with the names that it takes from it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{name.name}" for name in node.names)


@pytest.mark.parametrize("folder", [ROOT, PLATFORM], ids=["app", "platform"])
def test_every_library_of_azure_that_is_imported_is_declared(folder):
    """They share the name `azure`, so deptry takes one for all; `azure.data.tables` is of `azure-data-tables`."""
    declared = {
        re.match(r"[\w-]+", line)[0].replace("-", ".")  # type: ignore[index]
        for line in project(folder)["project"]["dependencies"]
    }
    undeclared = {
        f"{path}: {name}"
        for path in scanned(folder)
        for name in imported(folder / path)
        if name.startswith("azure.")
        and not any(f"{name}.".startswith(f"{own}.") for own in declared)
    }
    assert undeclared == set()


def test_what_is_deployed_is_held_against_the_dependencies():
    """All that `.funcignore` sends, except the commands of people."""
    rule = ignored()
    deployed = {path for path in modules(ROOT) if not rule.drops(PurePosixPath(path))}
    assert scanned(ROOT) == deployed - COMMANDS
