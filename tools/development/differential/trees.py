"""The files of the base in their own folder, with this run's package beside them."""

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from development.faults import DevelopmentCode
from development.servicebus_config import ROOT
from functions_alone.faults import StackFault
from functions_alone.ports import StackError

PACKAGE, FORMER = "tools/development/differential", "development/differential"
"""The path of the package, and its path in commits before `tools/` existed."""
COURSES = "tests/exploration/courses.py"
WORDS = "engine/words/en.json"
OF_ITS_COMMIT = ("side.py", "neutral.py")
"""The modules of the package that know the records of their commit. An older base gets their first version.

So their first version has to stay in the history, and must read today's moves (`side.FORM`).
"""


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """Check out the files of this commit into a folder, ready for the run.

    Raises `StackError` for an unknown commit.
    """
    with TemporaryDirectory(prefix="differential-") as folder:
        tree = Path(folder)
        archive = _git(commit, "archive", "--format=tar", commit)
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(tree, filter="data")
        _add_package(tree, commit)
        share_words(tree)
        yield tree


def share_words(tree: Path) -> None:
    """Give the base this tree's texts for its keys, because a new text is not a different decision."""
    path = tree / WORDS
    if path.exists():
        former, new = (json.loads((root / WORDS).read_text("utf-8")) for root in (tree, ROOT))
        shared = {key: new.get(key, words) for key, words in former.items()}
        path.write_text(json.dumps(shared), "utf-8")


def _add_package(tree: Path, commit: str) -> None:
    place = PACKAGE if (tree / "tools/development").exists() else FORMER
    first = {f"{place}/{name}": f"{FORMER}/{name}" for name in OF_ITS_COMMIT} | {COURSES: COURSES}
    own = {name: _own_or_first(tree, commit, name, first[name]) for name in first}
    shutil.rmtree(tree / place, ignore_errors=True)
    shutil.copytree(ROOT / PACKAGE, tree / place, ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in own.items():
        (tree / name).write_bytes(text)


def _own_or_first(tree: Path, commit: str, name: str, first: str) -> bytes:
    """Return the commit's module, or its first version, or the one that is not committed yet."""
    path = tree / name
    if path.exists():
        return path.read_bytes()
    added = _git(commit, "log", "--diff-filter=A", "--format=%H", "HEAD", "--", first).split()
    return (
        _git(commit, "show", f"{added[-1].decode()}:{first}")
        if added
        else (ROOT / name).read_bytes()
    )


def _git(commit: str, *arguments: str) -> bytes:
    """Return the output of git. If it fails, the error names `commit`."""
    ran = subprocess.run(  # noqa: S603
        ["git", *arguments],  # noqa: S607 - that of the developer
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if ran.returncode:
        output = ran.stderr.decode(errors="replace").strip()
        raise StackError(StackFault(DevelopmentCode.COMMIT_UNKNOWN, commit, {"output": output}))
    return ran.stdout


def started(tree: Path, module: str, *arguments: str) -> "subprocess.Popen[str]":
    """Start a module of this tree in a process that sees no other tree. Its output can be read."""
    roots: Sequence[Path] = (tree, tree / "tools", tree / "tests", tree / "tests/support")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, roots)),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.Popen(  # noqa: S603 - a module of the project
        command, cwd=tree, env=environment, stdout=subprocess.PIPE, text=True
    )
