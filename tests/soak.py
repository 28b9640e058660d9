"""`make soak`: the slow tests, slice by slice, with the duration of each part.

Tests marked `alone` run one at a time, after all others. One of them that fails is repeated once, by itself: if it
then passes, the run prints `flaky:` and its name.
"""

import os
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from tests.slices import AGAIN, NIGHTLY, PROCESS_FOR_EACH, SLICES

WORKERS = 6
"""More than the cores: most of them wait at any time."""
SECONDS = 1800
"""How long one test may take."""
NO_TESTS = 5
"""pytest's exit code where a slice has no test of the kind."""


class Parts:
    """The parts of a run that have ended, with their durations in seconds and whether they passed."""

    def __init__(self) -> None:
        self._ended: list[tuple[str, float, bool]] = []

    def run(self, name: str, *arguments: str, **variables: str) -> bool:
        """Run pytest; return whether no test failed."""
        click.echo(f"== soak: {name}")
        began = time.monotonic()
        command = [sys.executable, "-m", "pytest", "-v", f"--timeout={SECONDS}", *arguments]
        code = subprocess.run(command, env=os.environ | variables, check=False).returncode
        self._ended.append((name, time.monotonic() - began, code in (0, NO_TESTS)))
        return code in (0, NO_TESTS)

    def report(self) -> None:
        """Print a line for each part."""
        for name, seconds, passed in self._ended:
            click.echo(f"{seconds:6.0f} s  {'passed' if passed else 'FAILED'}  {name}")


@click.command(help=__doc__)
@click.argument("slices", nargs=-1, type=click.Choice([*SLICES]))
def main(slices: Sequence[str]) -> None:
    """Run the named slices; by default all, but the nightly one only if NIGHTLY is set."""
    names = slices or [name for name in SLICES if name != NIGHTLY or os.environ.get("NIGHTLY")]
    options = [f"--slice={name}" for name in names]
    parts = Parts()
    passed = [
        parts.run(
            f"side by side: {', '.join(names)}",
            *("-n", str(WORKERS), "-m", "soak and not alone", *options),
        )
    ]
    if PROCESS_FOR_EACH in names:
        passed.append(
            parts.run(
                "a process for each function",
                *("-n", str(WORKERS), "-m", "not soak or each", *AGAIN),
                LOCAL_FUNCTION_PROCESSES="each",
            )
        )
    passed.append(alone(parts, options))
    parts.report()
    sys.exit(0 if all(passed) else 1)


def alone(parts: Parts, options: Collection[str]) -> bool:
    """Run the tests marked `alone` one at a time, and repeat each failed test once, by itself."""
    with TemporaryDirectory() as folder:
        noted = Path(folder) / "failed"
        choice = ("-n", "0", "-m", "soak and alone", *options, f"--note-failures={noted}")
        if parts.run("one at a time", *choice):
            return True
        failed = noted.read_text().splitlines() if noted.exists() else []
    repeated = {test: parts.run(f"again: {test}", "-n", "0", "-m", "soak", test) for test in failed}
    for test in (test for test, passed in repeated.items() if passed):
        click.echo(f"flaky: {test}")
    return bool(repeated) and all(repeated.values())


if __name__ == "__main__":
    main()
