"""The table of `docs/explanation/testing.md` with what is used of libraries although they do not promise it."""

import re
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/explanation/testing.md"
ROWS = [
    [re.findall(r"`([^`]+)`", cell) for cell in line.split(" | ")]
    for line in PAGE.read_text().split("\n## Private interfaces\n")[1].splitlines()
    if line.startswith("| ") and not line.startswith("| interface |")
]
PRODUCT = ("agents", "bootstrap", "engine", "operations", "scheduler", "shop", "submission")
PRODUCT += ("supervisor", "testkit", "tools")
PRIVATE = re.compile(
    r"# noqa: SLF001|from azure\.functions\.(?:meta|decorators\.\w+) import|from [\w.]+ import _"
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][0])
def test_every_row_names_places_and_tests_that_exist(row):
    """A test is a file, or one function of it."""
    _, places, _, tests = row
    assert places
    assert tests
    for name in chain(places, tests):
        path, _, function = name.partition("::")
        assert (ROOT / path).exists(), name
        if function:
            assert f"\ndef {function}(" in (ROOT / path).read_text().replace("async def", "def"), (
                name
            )


def test_every_file_that_uses_the_inside_of_a_library_has_a_row():
    """The files in Python; those in JavaScript cannot be told by their text."""
    listed = {ROOT / place for _, places, *_ in ROWS for place in places}
    users = {
        path
        for path in chain.from_iterable((ROOT / part).rglob("*.py") for part in PRODUCT)
        if "tests" not in path.parts
        and "node_modules" not in path.parts
        and PRIVATE.search(path.read_text())
    }
    assert users
    assert {path for path in users if not listed & {path, *path.parents}} == set()
