"""`make pattern`: which statement of docs/pattern.md is proven by which tests.

Fails when a statement of a finished part has no test.
"""

import io
import re
import sys
from collections import defaultdict
from contextlib import redirect_stdout
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
STATEMENT = re.compile(r"\b(?:SUB|SCH|AGT|SUP|UND|ALR|OPR|FLT|WRK)-\d+\b")

FINISHED = {
    *(f"SUB-{number}" for number in range(1, 7)),
    *(f"SCH-{number}" for number in range(1, 13)),
    *(f"AGT-{number}" for number in range(1, 11)),
    *(f"SUP-{number}" for number in range(1, 9)),
    *(f"UND-{number}" for number in range(1, 6)),
    *(f"ALR-{number}" for number in range(1, 4)),
    *(f"OPR-{number}" for number in (1, 2, 3, 4, 6)),
    *(f"FLT-{number}" for number in range(1, 13)),
    *(f"WRK-{number}" for number in range(1, 6)),
}


class Collector:
    """Notes, while pytest collects, what each test says it proves."""

    def __init__(self) -> None:
        self.tests: dict[str, set[str]] = defaultdict(set)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Read the marks of every test."""
        for item in items:
            for mark in item.iter_markers("proves"):
                for statement in mark.args:
                    self.tests[statement].add(item.nodeid.partition("[")[0])


def main(*, brief: bool) -> int:
    """Print the table, or in brief only what is wrong and the sum; return the exit code."""
    collector = Collector()
    collected = io.StringIO()  # of interest only when something cannot be collected
    with redirect_stdout(collected):
        code = pytest.main(["--collect-only", "-qq", "--no-header", "-o", "addopts="], plugins=[collector])
    if code:
        print(collected.getvalue())
        return 1
    known = sorted(set(STATEMENT.findall((ROOT / "docs/pattern.md").read_text())), key=_order)
    for statement in known if not brief else ():
        tests = sorted(collector.tests.get(statement, ()))
        print(f"{statement:8}{'proven by ' + str(len(tests)) if tests else 'not proven yet'}")
        for test in tests:
            print(f"        {test}")
    unproven = sorted(FINISHED - collector.tests.keys(), key=_order)
    unknown = sorted(collector.tests.keys() - set(known))
    if unproven:
        print(f"of finished parts, without a test: {', '.join(unproven)}")
    if unknown:
        print(f"named by tests, but no statement: {', '.join(unknown)}")
    print(f"{len(collector.tests)} of {len(known)} statements proven")
    return 1 if unproven or unknown else 0


def _order(statement: str) -> tuple[str, int]:
    name, _, number = statement.partition("-")
    return name, int(number)


if __name__ == "__main__":
    sys.exit(main(brief="--brief" in sys.argv))
