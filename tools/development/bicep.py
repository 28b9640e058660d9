"""Builds and lints the Bicep template with Microsoft's compiler: `python -m development.bicep`.

Any diagnostic fails it.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from development.faults import DevelopmentCode
from development.servicebus_config import ROOT
from functions_alone.faults import StackFault, text_of
from functions_alone.ports import StackError

MAIN = ROOT / "infra/main.bicep"
PINNED = "0.49.2"
"""The version of CI, with which the snapshots of the tests were made."""
INSTALLED = (".azd/bin/bicep", ".azure/bin/bicep")
"""Where azd and az keep their compiler, relative to the home folder."""


def find(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the compiler that `BICEP` names, or else the one on the path, of azd, or of az.

    Raises `StackError` if `BICEP` names no program.
    """
    if named := environment.get("BICEP"):
        if not shutil.which(named):
            raise StackError(StackFault(DevelopmentCode.BICEP_INVALID, "BICEP", {"value": named}))
        return named
    home = environment.get("HOME") or environment.get("USERPROFILE") or ""
    candidates = (
        shutil.which("bicep", path=environment.get("PATH")),
        *(shutil.which(f"{home}/{name}") for name in INSTALLED),
    )
    return next(filter(None, candidates), None)


def version_of(compiler: str) -> str:
    """Return the version of a compiler, or its output if that has no version."""
    output = _run(compiler, "--version").stdout
    found = re.search(r"\d+\.\d+\.\d+", output)
    return found.group() if found else output.strip()


def diagnostics(compiler: str, template: Path = MAIN) -> str:
    """Return the output of the compiler and its linter for a template. Empty if there is none.

    A compiler that fails without output is a diagnostic, too.
    """
    output = []
    for arguments in (("build", "--stdout"), ("lint",)):
        ran = _run(compiler, arguments[0], str(template), *arguments[1:])
        output.append(ran.stderr.strip())
        if ran.returncode and not ran.stderr.strip():
            output.append(f"bicep {arguments[0]}: exit code {ran.returncode}")
    return "\n".join(dict.fromkeys(line for text in output for line in text.splitlines()))


def _run(compiler: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [compiler, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - found above


def required() -> str:
    """Return the compiler. Warn on standard error if its version differs from CI's.

    Raises `StackError` if there is none.
    """
    if not (compiler := find()):
        raise StackError(StackFault(DevelopmentCode.BICEP_MISSING, "bicep", {"version": PINNED}))
    if (version := version_of(compiler)) != PINNED:
        print(f"warning: {compiler} is Bicep {version}; CI uses {PINNED}.", file=sys.stderr)
    return compiler


@click.command(help=__doc__)
def main() -> None:
    try:
        compiler = required()
    except StackError as error:
        sys.exit(str(error))
    if output := diagnostics(compiler):
        facts = {"diagnostics": output}
        sys.exit(
            text_of(
                StackFault(DevelopmentCode.TEMPLATE_REFUSED, str(MAIN.relative_to(ROOT)), facts)
            )
        )
    print(f"{MAIN.relative_to(ROOT)} compiles without a diagnostic.")


if __name__ == "__main__":
    main()
