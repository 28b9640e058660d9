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

from tests.slices import AGAIN, FINISHED, NIGHTLY, PROCESS_PER_FUNCTION, SLICES

WORKERS = 3
"""More than the cores, since tests wait much. With four, tests failed for want of processor time on two cores."""
SECONDS = 1800
"""How long one test may take."""
PASSED, FAILED, NO_TESTS = 0, 1, 5
"""Exit codes of pytest: a slice may have no test of one kind."""
ENDS = {PASSED: "passed", NO_TESTS: "no tests"}


class Parts:
    """The parts of a run that have ended, with their durations in seconds and their exit codes."""

    def __init__(self) -> None:
        self._ended: list[tuple[str, float, int]] = []

    def run(self, name: str, *arguments: str, **variables: str) -> int:
        """Run pytest; return its exit code."""
        click.echo(f"== soak: {name}")
        began = time.monotonic()
        command = [sys.executable, "-m", "pytest", "-v", f"--timeout={SECONDS}", *arguments]
        code = subprocess.run(command, env=os.environ | variables, check=False).returncode
        self._ended.append((name, time.monotonic() - began, code))
        return code

    def report(self) -> None:
        """Print a line for each part."""
        for name, seconds, code in self._ended:
            click.echo(f"{seconds:6.0f} s  {ENDS.get(code, 'FAILED'):8}  {name}")


@click.command(help=__doc__)
@click.argument("slices", nargs=-1, type=click.Choice([*SLICES]))
def main(slices: Sequence[str]) -> None:
    """Run the named slices; by default all, but the nightly one only if NIGHTLY is set."""
    names = slices or [
        name for name in SLICES if name != NIGHTLY or os.environ.get("NIGHTLY") == "1"
    ]
    options = [f"--slice={name}" for name in names]
    parts = Parts()
    codes = [side_by_side(parts, names, options), alone(parts, options)]
    passed = PASSED in codes and set(codes) <= {PASSED, NO_TESTS}
    if PROCESS_PER_FUNCTION in names:
        passed = process_per_function(parts) == PASSED and passed
    parts.report()
    sys.exit(0 if passed else 1)


def side_by_side(parts: Parts, names: Sequence[str], options: Collection[str]) -> int:
    """Run several tests at a time; return pytest's exit code."""
    choice = ("-n", str(WORKERS), "-m", "soak and not alone", *options)
    return parts.run(f"side by side: {', '.join(names)}", *choice)


def process_per_function(parts: Parts) -> int:
    """Run some files once more, with a process for each function; return pytest's exit code."""
    choice = ("-n", str(WORKERS), "-m", "not soak or process_per_function", *AGAIN)
    return parts.run("a process for each function", *choice, LOCAL_FUNCTION_PROCESSES="each")


def alone(parts: Parts, options: Collection[str]) -> int:
    """Run the tests marked `alone` one at a time, and repeat each failed test once, by itself.

    Returns pytest's exit code: that of a success if each repeated test passed.
    """
    with TemporaryDirectory() as folder:
        noted = Path(folder) / "failed"
        choice = ("-n", "0", "-m", "soak and alone", *options, f"--note-failures={noted}")
        code = parts.run("one at a time", *choice)
        # A run that broke off has no last line: the tests after that were not run.
        lines = noted.read_text().splitlines() if noted.exists() else []
        *failed, last = lines or [""]
    if code != FAILED or last != FINISHED:
        return code
    again = {test: parts.run(f"again: {test}", "-n", "0", "-m", "soak", test) for test in failed}
    for test in (test for test, repeated in again.items() if repeated == PASSED):
        click.echo(f"flaky: {test}")
    return PASSED if failed and set(again.values()) == {PASSED} else FAILED


if __name__ == "__main__":
    main()
