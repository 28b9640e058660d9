"""The package that is deployed, a Python that has what it requires and no more, and a stack whose hosts run it."""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import click
import cronsim

import functions_alone
from development.install import install
from development.servicebus_config import ROOT
from development.stack import AppStack, AppStackConfig
from functions_alone.process import Process
from tests.support import recording
from tests.support.azd_ignore import AzdIgnore

AZURE_PYTHON = json.loads((ROOT / "infra/options/app.json").read_text())["pythonVersion"]
PYTHON = "{}.{}".format(*sys.version_info)
KEPT = Path(sys.prefix) / "clean"
"""Part of the tests' own environment, and gone with it."""


def ignored() -> AzdIgnore:
    """Return azd's rule for the files that stay here."""
    return AzdIgnore((ROOT / ".funcignore").read_text().splitlines())


def build(folder: Path) -> Path:
    """Copy what is deployed, as azd does: the working tree, without what .funcignore names."""
    spec = ignored()

    def skip(parent: str, names: list[str]) -> list[str]:
        inside = PurePosixPath(Path(parent).relative_to(ROOT))
        return [
            name
            for name in names
            if spec.drops(inside / name, is_folder=(Path(parent) / name).is_dir())
        ]

    shutil.copytree(ROOT, folder, ignore=skip)
    return folder


def clean_python(*more: str, named_in: str = "requirements.txt") -> Path:
    """Return a Python that has what a requirements file names, `more`, and nothing else.

    It is kept, and made anew when the requirements or this Python are others.
    """
    requirements = ROOT / named_in

    def make(folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        install("--require-hashes", "-r", requirements, python=folder / "bin/python")
        if more:
            install(*more, python=folder / "bin/python")

    return _kept(make, sys.version, requirements.read_text(), *more) / "bin/python"


def _kept(make: Callable[[Path], None], *reasons: str) -> Path:
    """Return the folder that was made for these reasons; it appears whole, whoever else makes it at the same time."""
    folder = KEPT / hashlib.sha256(repr(reasons).encode()).hexdigest()[:16]
    if not folder.exists():
        KEPT.mkdir(exist_ok=True)
        with TemporaryDirectory(dir=KEPT) as making:
            make(Path(making))
            try:
                Path(making).rename(folder)
            except OSError:
                if not folder.exists():
                    raise
    return folder


def tools(folder: Path) -> Path:
    """Fill a folder with the embedded host, what it needs besides the app's packages, and what records calls."""
    for package in (functions_alone, click, cronsim):
        source = Path(str(package.__file__)).parent
        shutil.copytree(
            source, folder / source.name, ignore=shutil.ignore_patterns("node_modules", "tests")
        )
    shutil.copy(recording.__file__, folder)
    return folder


class DeployedStack(AppStack):
    """A stack whose hosts run the package on a clean Python, from its folder, with their calls written down."""

    def __init__(self, config: AppStackConfig, python: Path, tools: Path) -> None:
        super().__init__(config)
        self._clean, self._tools = python, tools

    def _host(self, name: str, fd: int, own: Mapping[str, str], *arguments: str) -> Process:
        command = self._command(
            name, str(self._clean), "-m", "recording", "--log-level", "DEBUG", *arguments
        )
        env = {**command.env, **own, "PYTHONPATH": str(self._tools)}
        return Process(replace(command, fds=(fd,), cwd=self._tools, env=env))


if __name__ == "__main__":
    clean_python()
