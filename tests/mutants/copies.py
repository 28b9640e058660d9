"""Copies of the tree, in which a fault can be seeded and tests run."""

import itertools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Self

from tests.mutants.mutant import Mutant

ROOT = Path(__file__).parents[2]
LINKED = (".venv", "tools/functions_alone/node_modules")
LEFT_OUT = (
    ".git",
    ".venv*",
    "node_modules",
    ".data",
    ".pictures",
    ".hypothesis",
    "__pycache__",
    ".*_cache",
)
LONGEST_SECONDS = 120
"""For one test."""

ENVIRONMENT = os.environ | {"COLUMNS": "500"}
"""So that no line of the summary is cut off."""
FAILED = re.compile(r"^FAILED (.+?)(?: - (.*))?$", re.MULTILINE)
SOME_FAILED = 1
NO_PROOF = ("NameError", "ImportError", "UnboundLocalError", "Failed: Timeout")
"""Of these a test dies whatever it asserts: the fault makes no sense, or lets the test hang."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """How the tests ended."""

    verdict: str
    by: str = ""
    """The first test that failed, or what else went wrong."""

    @property
    def killed(self) -> bool:
        """Whether a test failed by what it asserts."""
        return self.verdict == "killed"

    @property
    def passed(self) -> bool:
        """Whether all tests passed."""
        return self.verdict == "SURVIVED"


class Copy:
    """A copy of the tree, gone when it is left."""

    _times = itertools.count(1)
    """A changed file gets a time that it never had before, or an old compiled module might be taken for the new one."""

    def __enter__(self) -> Self:
        self.root = Path(mkdtemp(prefix="mutant-")) / "tree"
        shutil.copytree(ROOT, self.root, ignore=shutil.ignore_patterns(*LEFT_OUT))
        for name in LINKED:
            if (ROOT / name).exists():
                (self.root / name).symlink_to((ROOT / name).resolve())
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.root.parent)

    @contextmanager
    def seeded(self, mutant: Mutant) -> Iterator[None]:
        """Have the fault in the copy for as long as this lasts."""
        path = self.root / mutant.file
        text, before, time = path.read_text(encoding="utf-8"), path.stat(), next(self._times)
        path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        os.utime(path, (time, time))
        try:
            yield
        finally:
            path.write_text(text, encoding="utf-8")
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def run(self, tests: Sequence[str]) -> Result:
        """Run these tests until one fails."""
        options = [
            "-x",
            "-q",
            "-n",
            "0",
            "-rfE",
            "--tb=line",
            "--no-header",
            f"--timeout={LONGEST_SECONDS}",
        ]
        command = [sys.executable, "-m", "pytest", *options, *tests]
        ran = subprocess.run(
            command,
            cwd=self.root,
            env=ENVIRONMENT | {"PYTHONPATH": str(self.root / "tools")},
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode == 0:
            return Result(verdict="SURVIVED")
        failed = FAILED.search(ran.stdout)
        if ran.returncode == SOME_FAILED and failed and not (failed[2] or "").startswith(NO_PROOF):
            return Result(verdict="killed", by=failed[1])
        return Result(verdict="ERROR", by=(ran.stdout + ran.stderr)[-2000:])
