"""`make pattern`: which rule of docs/pattern.md is proven by which tests, and checked by which laws.

Fails when a rule has no test, and when a documented failure mode (section 10) is not forced on the running system,
or not in the exploration.
"""

import io
import re
import signal
import sys
import textwrap
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from testkit.exploration.laws.registry import LAWS

ROOT = Path(__file__).parent.parent
STATEMENT = re.compile(r"\b(?:SUB|SCH|AGT|ANS|SUP|UND|ALR|OPR|FLT|WRK)-\d+\b")

PARAGRAPH = re.compile(r"^- (.+?)(?=^- |^$)", re.MULTILINE | re.DOTALL)
INDENT = " " * 8
COLUMNS = 100

PLACES = {"on the running system": "tests/system/", "in the exploration": "tests/exploration/"}
"""Where each documented failure mode has a test (docs/pattern.md, 10)."""


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
        code = pytest.main(
            ["--collect-only", "-qq", "--no-header", "-o", "addopts=--import-mode=importlib"],
            plugins=[collector],
        )
    if code:
        if code != pytest.ExitCode.USAGE_ERROR:  # that stands on standard error already
            print(collected.getvalue())
        return 1
    page = (ROOT / "docs/pattern.md").read_text()
    known = sorted(set(STATEMENT.findall(page)), key=_order)
    if not brief:
        print(*table(known, collector.tests, texts(page), laws()), sep="\n")
    wrong = list(faults(known, collector.tests, laws()))
    print(
        *wrong,
        f"{len(collector.tests.keys() & set(known))} of {len(known)} rules proven",
        sep="\n",
    )
    return 1 if wrong else 0


def laws() -> Mapping[str, Sequence[str]]:
    """Return the laws of the exploration that check each statement."""
    found: dict[str, list[str]] = defaultdict(list)
    for law in LAWS:
        for statement in law.statements:
            found[statement].append(f"{law.name}, {law.moment}")
    return found


def texts(page: str) -> Mapping[str, str]:
    """Return what each statement says; several of one paragraph are separated by semicolons."""
    found = {}
    for paragraph in PARAGRAPH.findall(f"{page}\n\n"):
        for part in re.split(r"; (?=FLT-\d)", " ".join(paragraph.split())):
            name, _, found[name] = part.partition(" ")
    return {name: text for name, text in found.items() if STATEMENT.fullmatch(name)}


def table(
    known: Collection[str],
    tests: Mapping[str, Collection[str]],
    says: Mapping[str, str],
    laws: Mapping[str, Collection[str]],
) -> Iterator[str]:
    """Return the lines that list each statement with what it says, with its tests and laws."""
    for statement in known:
        proofs = sorted(tests.get(statement, ()))
        yield from textwrap.wrap(
            f"{statement:8}{says.get(statement, '')}", COLUMNS, subsequent_indent=INDENT
        )
        yield f"{INDENT}{f'proven by {len(proofs)}' if proofs else 'not proven'}"
        yield from (f"{INDENT}  {test}" for test in proofs)
        yield from (f"{INDENT}law {law}" for law in laws.get(statement, ()))


def faults(
    known: Collection[str],
    tests: Mapping[str, Collection[str]],
    laws: Mapping[str, Collection[str]],
) -> Iterator[str]:
    """Return what is wrong with what the tests and laws say they prove."""
    failures = [statement for statement in known if statement.startswith("FLT-")]
    wrong = {
        "without a test": set(known) - tests.keys(),
        "named by tests, but no rule": tests.keys() - set(known),
        "named by laws, but no rule": laws.keys() - set(known),
    } | {
        f"failure modes without a test {where}": {
            statement
            for statement in failures
            if not any(test.startswith(folder) for test in tests.get(statement, ()))
        }
        for where, folder in PLACES.items()
    }
    yield from (
        f"{what}: {', '.join(sorted(which, key=_order))}" for what, which in wrong.items() if which
    )


def _order(statement: str) -> tuple[str, int]:
    name, _, number = statement.partition("-")
    return name, int(number) if number.isdecimal() else 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `make pattern | head` ends quietly
    sys.exit(main(brief="--brief" in sys.argv))
