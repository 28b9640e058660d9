"""A fault to seed into the shipped code."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


class Where(StrEnum):
    """What the tests need that notice a fault; with it grows what a mutant costs."""

    UNIT = "unit"
    """Nothing."""
    CONTRACT = "contract"
    """Azurite, a broker or a host."""
    SYSTEM = "system"
    """The whole stack, and a browser."""


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One fault: `old`, which stands exactly once in the file, becomes `new`, and one of the tests fails."""

    statement: str = ""
    """What it breaks of the pattern, and what each of the tests claims to prove; empty if nothing of it."""
    fault: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    """Node ids, with parameters or without."""
    where: Where = Where.UNIT

    @property
    def label(self) -> str:
        """What the fault is called."""
        return f"{self.statement} {self.fault}".lstrip()

    def faults(self, root: Path) -> Iterator[str]:
        """Say what is wrong with this row of the table."""
        found = (root / self.file).read_text(encoding="utf-8").count(self.old)
        if found != 1:
            yield f"{self.label}: stands {found} times in {self.file}: {self.old}"
        for test in self.tests:
            file, _, name = test.partition("::")
            claims = _claims(root / file).get(name.partition("[")[0])
            if claims is None:
                yield f"{self.label}: there is no test {test}"
            elif self.statement and self.statement not in claims:
                yield f"{self.label}: no proof of {self.statement} by the mark of {test}"


@cache
def _claims(path: Path) -> Mapping[str, set[object]]:
    """Return by the name of each test what stands in its marks."""
    functions = [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, FUNCTION)
    ]
    return {
        function.name: {
            part.value
            for mark in function.decorator_list
            for part in ast.walk(mark)
            if isinstance(part, ast.Constant)
        }
        for function in functions
    }
