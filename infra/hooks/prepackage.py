"""Runs before azd packs: installs the packages that are sent with the app.

They are the packages with which the tests ran, for Azure's Python and Linux, whatever runs here. A
build on Azure has used another Python (Azure/azure-dev, issue 8538).
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import List, Mapping

from faults import HookError, HookFault, run
from package import FOLDER, PARTIAL, REQUIREMENTS, STAMP, Stamp, chosen_python, digest
from parameters import APP_OPTIONS
from programs import ROOT, path_of

UV = ROOT / "infra/hooks/uv.txt"


def main(environment: Mapping[str, str]) -> None:
    """Install everything beside the package, then replace it. Raises `HookError` if that fails."""
    version = chosen_python()
    if not re.fullmatch(r"3\.[0-9]+", version):
        facts = {"value": version, "example": "3.13"}
        raise HookError(HookFault("python-version-invalid", APP_OPTIONS, facts))
    stamp = Stamp(version, digest())
    try:
        _remove(PARTIAL)
        install(version)
        (PARTIAL / STAMP).write_text(stamp.text(), encoding="utf-8")
        replace()
    except OSError as error:
        raise HookError(HookFault("folder-unusable", FOLDER.name, {"reason": error})) from error
    finally:
        shutil.rmtree(str(PARTIAL), ignore_errors=True)
    print("Packed for Python {} on x86_64 Linux.".format(version))


def install(version: str) -> None:
    """Install uv into a temporary folder, and install the packages with it."""
    with tempfile.TemporaryDirectory() as tools:
        pip = ["install", "--quiet", "--disable-pip-version-check", "--target", tools]
        # uv is a program of its own, whatever Python its package asks for.
        pip += ["--ignore-requires-python", "--require-hashes", "--no-deps", "-r", str(UV)]
        _install("pip", [sys.executable, "-m", "pip", *pip])
        # Not with pip: it would choose packages for the Python that runs it.
        uv = ["pip", "install", "--quiet", "--target", str(PARTIAL / "lib/site-packages")]
        uv += ["--python", sys.executable, "--python-version", version]
        uv += ["--python-platform", "x86_64-manylinux_2_28", "--only-binary", ":all:"]
        uv += ["--require-hashes", "-r", str(REQUIREMENTS)]
        _install("uv", [path_of("uv", Path(tools) / "bin"), *uv])


def _install(name: str, command: List[str]) -> None:
    """Run an installer, whose output goes to that of this hook."""
    try:
        code = subprocess.run(command, check=False).returncode
    except OSError as error:
        facts = {"exit": "none", "output": error}
        raise HookError(HookFault("program-failed", name, facts)) from error
    if code:
        facts = {"exit": code, "python": sys.executable}
        raise HookError(HookFault("install-failed", name, facts))


def replace() -> None:
    """Replace the last package by the complete new one."""
    # Without its stamp the old package is not sent, wherever this breaks off.
    if (FOLDER / STAMP).exists():
        (FOLDER / STAMP).unlink()
    _remove(FOLDER)
    PARTIAL.rename(FOLDER)


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(str(folder))


if __name__ == "__main__":
    run("Nothing was packed:", main)
