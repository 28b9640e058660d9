"""Copies of the repository in which another business is deployed, as `docs/reference/workflow.md` says."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from development.servicebus_config import ROOT
from tests.mutants.copies import LEFT_OUT

SHOWN = 'auth=ClientCredentials("BANK_TOKEN_URL", "BANK_CLIENT", "BANK_SECRET")'
READS_DEPLOYED = re.compile(r"\bDEPLOYED\b|^(?:from|import) deploying\b", re.MULTILINE)
LINKED = ("tools/functions_alone/node_modules", "engine/pages/node_modules")


def copy_of_tree(folder: Path) -> Path:
    """Copy what belongs to the repository, and link what is installed beside it."""
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
    (folder / ".venv").symlink_to(sys.prefix)
    for name in LINKED:
        if (ROOT / name).exists():
            (folder / name).symlink_to(ROOT / name)
    return folder


def with_claims(folder: Path) -> Path:
    """Return a copy of the repository that deploys the claims, from a folder beside the shop's.

    Their bank wants a token of an OAuth server.
    """
    root = copy_of_tree(folder)
    shutil.copytree(root / "samples/claims", root / "claims")
    business = root / "claims/business.py"
    text = business.read_text().replace("    Agent,\n", "    Agent,\n    ClientCredentials,\n")
    business.write_text(text.replace('Banking("bank", ', f'Banking("bank", {SHOWN}, '))
    run(root, "-m", "development.declared", "--deploy", "claims.business:CLAIMS")
    run(root, "-m", "ruff", "check", "--quiet", "--fix", "--select", "I", "claims")
    run(root, "-m", "ruff", "format", "--quiet", "claims")
    return root


def with_rental(folder: Path) -> Path:
    """Return a copy of the repository that deploys the car rental of the tests."""
    root = copy_of_tree(folder)
    (root / "tests/businesses/rental").rename(root / "rental")
    run(root, "-m", "development.declared", "--deploy", "rental.business:RENTAL")
    return root


def readers_of_deployed(root: Path) -> list[str]:
    """Return the test files that read which business is deployed, and the folders whose fixtures do."""
    reading = [
        path
        for pattern in ("test_*.py", "conftest.py")
        for path in sorted((root / "tests").rglob(pattern))
        if READS_DEPLOYED.search(path.read_text())
    ]
    folders = {path.parent for path in reading if path.name == "conftest.py"}
    files = {path for path in reading if path.parent not in folders}
    return [str(path.relative_to(root)) for path in sorted(folders | files)]


def run(root: Path, *arguments: str) -> str:
    """Run Python in a copy and return its output; fails the test if the exit code is not 0."""
    environment = os.environ | {
        "MYPY_CACHE_DIR": str(ROOT / ".mypy_cache"),
        "PYTHONPATH": str(root / "tools"),
    }
    for name in [name for name in environment if name.startswith(("PYTEST", "COV"))]:
        del environment[name]
    command = [sys.executable, *arguments]
    ran = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-6000:]
    return ran.stdout
