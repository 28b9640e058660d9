"""A checkout by Git for Windows, whose default changes line ends."""

import os
import shutil
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest

from development.servicebus_config import ROOT
from tests.mutants.copies import LEFT_OUT

READ_BY_A_SHELL = [
    *("Makefile", ".ci/run", "azure.yaml", "requirements.txt", "requirements-local.txt"),
    *(str(path.relative_to(ROOT)) for path in ROOT.glob("tests/support/*.sh")),
    *(str(path.relative_to(ROOT)) for path in ROOT.glob("infra/hooks/*.*")),
    *(str(path.relative_to(ROOT)) for path in ROOT.glob("tools/functions_alone/*.mjs")),
]
OWN = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


def git(*arguments, folder):
    """Run git without what a person has configured."""
    author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    command = ["git", *author, *arguments]
    subprocess.run(command, cwd=folder, env=os.environ | OWN, check=True, capture_output=True)


@pytest.mark.skipif(not shutil.which("git"), reason="there is no git")
def test_line_ends_stay_in_a_clone_that_would_change_them(tmp_path):
    """(bugs 5) A shell takes the CR of a script's first line for a part of the interpreter's name."""
    source, clone = tmp_path / "source", tmp_path / "clone"
    for name in [".gitattributes", *READ_BY_A_SHELL]:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    git("init", "--quiet", folder=source)
    git("add", ".", folder=source)
    git("commit", "--quiet", "--message=all", folder=source)
    changed = ("-c", "core.autocrlf=true", "-c", "core.eol=crlf")
    git("clone", "--quiet", *changed, str(source), str(clone), folder=tmp_path)
    assert [name for name in READ_BY_A_SHELL if b"\r" in (clone / name).read_bytes()] == []


def files_of_the_repository():
    """Yield the path of each file, without what is installed or written beside them."""
    for folder, inner, names in os.walk(ROOT):
        inner[:] = [name for name in inner if not is_left_out(name)]
        yield from (Path(folder) / name for name in [*inner, *names] if not is_left_out(name))


def is_left_out(name):
    return any(fnmatch(name, pattern) for pattern in LEFT_OUT)


def test_no_file_is_a_link():
    """(bugs2 59) Git for Windows writes a link as a text with the path, unless its user may make links."""
    assert [path for path in files_of_the_repository() if path.is_symlink()] == []
