"""What `make test` says: a line for each folder when its tests have ended, and at the end what the run has cost."""

import os
import resource
import time
from collections import Counter, defaultdict
from typing import Any

import pytest

from functions_alone.tests.support.starts import STARTED
from tests.support.browsers import missing


def folder_of(nodeid: str) -> str:
    """Return the folder below `tests` that a test belongs to; that of the platform is named with it."""
    first, second, *more = nodeid.removeprefix("tools/").partition("::")[0].split("/")
    return f"{first}/{more[0]}" if second == "tests" else second


class Progress:
    """Counts the tests of each folder as they end. It lives where the results arrive."""

    def __init__(self, say: Any) -> None:
        self._say = say
        self._began = time.monotonic()
        self._waiting: Counter[str] = Counter()
        self._outcomes: dict[str, Counter[str]] = defaultdict(Counter)
        self._seconds: Counter[str] = Counter()
        self.started: Counter[str] = Counter()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """Learn from the first worker how many tests there are: every one has collected the same."""
        del node
        self._waiting = self._waiting or Counter(map(folder_of, ids))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Learn it from the run itself where there are no workers."""
        self._waiting = self._waiting or Counter(folder_of(item.nodeid) for item in session.items)

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Print no dot for what passed."""
        return ("passed", "", "PASSED") if report.when == "call" and report.passed else None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test that has ended; say so when it was the last of its folder."""
        folder = folder_of(report.nodeid)
        self._seconds[folder] += report.duration
        if report.when == "call" or report.outcome != "passed":
            self._outcomes[folder][report.outcome] += 1
        if report.when == "teardown":
            self._waiting[folder] -= 1
            if not self._waiting[folder]:
                self._say(self._line(folder))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Add up what a worker has started."""
        del error
        self.started.update(getattr(node, "workeroutput", {}).get("started", {}))

    def pytest_terminal_summary(self) -> None:
        """Say what was started, and what all of it has cost."""
        started = self.started + STARTED
        usage = [
            resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        ]
        seconds = sum(used.ru_utime + used.ru_stime for used in usage)
        counts = ", ".join(f"{started[name]} {name}" for name in sorted(started)) or "nothing"
        self._say(f"started: {counts}")
        self._say(f"{seconds:.0f} s of CPU in {time.monotonic() - self._began:.0f} s")

    def pytest_unconfigure(self) -> None:
        """Say last of all what could not be tested here."""
        if self._outcomes["browser"]["skipped"]:
            self._say(f"NOT TESTED: {missing(os.environ)}")

    def _line(self, folder: str) -> str:
        outcomes = ", ".join(
            f"{count} {outcome}" for outcome, count in self._outcomes[folder].items()
        )
        now = time.monotonic() - self._began
        return f"[{now:4.0f} s] {folder:<17} {outcomes} ({self._seconds[folder]:.0f} s of tests)"
