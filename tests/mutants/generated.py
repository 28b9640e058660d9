"""Mutants that mutmut makes of the rules, and which of them no test of these rules notices.

It runs tests by their ids, each mutant in a fork: an id with a backslash is not found again, and what a test module
makes when it is loaded was made before the mutant.
"""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import Path
from time import monotonic

from tests.mutants.copies import ROOT, Copy

CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutmut"]
MODULES = tuple(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for pattern in CONFIG["only_mutate"]
    for path in sorted(ROOT.glob(pattern))
)
"""What is mutated."""
LISTED = Path(__file__).with_name("survivors.toml")
AT_A_TIME = 2

NOTHING = "Filtered for specific mutants, but nothing matches"
"""What mutmut says of a module of which it makes no mutant, such as one of protocols alone."""

KILLED, TIMED_OUT = (1, 3), (-24, 24, 152, 36, 255)
"""How the tests of a mutant end that was noticed: by a failure, or since it hung."""


@dataclass(frozen=True, kw_only=True)
class Survivor:
    """A mutant that no test noticed."""

    function: str
    change: str
    """The fewest words of its line that differ."""


def run(modules: Sequence[str]) -> int:
    """Mutate these modules; return 1 if a mutant survives that is not listed, or one is listed that does not."""
    began = monotonic()
    with Copy() as copy:
        if report := _mutate(copy.root, modules):
            print("there is nothing in it to mutate" if NOTHING in report else report)
            return 0 if NOTHING in report else 1
        with chdir(copy.root):
            results = _results(modules)
            found = {_survivor(name) for name, code in results.items() if not _noticed(code)}
    known = {
        survivor
        for survivor in listed()
        if survivor.function.startswith(tuple(f"{module}." for module in modules))
    }
    _tell(results, modules)
    faults = [f"survives: {survivor.function}: {survivor.change}" for survivor in found - known]
    faults += [
        f"listed, but is noticed: {survivor.function}: {survivor.change}"
        for survivor in known - found
    ]
    print(*sorted(faults), f"{len(results)} mutants in {monotonic() - began:.0f} s", sep="\n")
    return 1 if faults or not results else 0


def _mutate(root: Path, modules: Sequence[str]) -> str:
    """Let mutmut work on a copy of the tree; return what it says if it cannot."""
    command = [Path(sys.executable).with_name("mutmut"), "run", f"--max-children={AT_A_TIME}"]
    names = [f"{module}.x*" for module in modules]
    ran = subprocess.run([*command, *names], cwd=root, capture_output=True, text=True, check=False)
    return (ran.stdout + ran.stderr)[-4000:] if ran.returncode else ""


def _results(modules: Iterable[str]) -> Mapping[str, int | None]:
    """Return how the tests of each mutant ended."""
    found: dict[str, int | None] = {}
    for module in modules:
        meta = Path("mutants", *module.split(".")).with_suffix(".py.meta")
        if meta.exists():  # else there is nothing in it to mutate
            found |= json.loads(meta.read_text())["exit_code_by_key"]
    return found


def _noticed(code: int | None) -> bool:
    return code in KILLED or code in TIMED_OUT


def _tell(results: Mapping[str, int | None], modules: Iterable[str]) -> None:
    for module in modules:
        codes = [code for name, code in results.items() if name.startswith(f"{module}.x")]
        if codes:
            noticed = sum(map(_noticed, codes))
            timed_out = sum(code in TIMED_OUT for code in codes)
            print(
                f"{module:22} {len(codes):4} mutants, {noticed:4} noticed, {timed_out} of them since they hang"
            )


def _survivor(name: str) -> Survivor:
    from mutmut.mutation.diff_apply import get_diff_for_mutant  # noqa: PLC0415 - it reads its settings where we are

    module, _, mangled = name.rpartition("__mutmut_")[0].rpartition(".")
    function = re.sub("ǁ", ".", mangled.removeprefix("x_").removeprefix("xǁ"))
    return Survivor(function=f"{module}.{function}", change=change_of(get_diff_for_mutant(name)))


def change_of(diff: str) -> str:
    """Return the words that a mutant has instead of others; so a list of mutants outlives most changes of the code."""
    old, new = (_words(diff, sign) for sign in "-+")
    begin = _alike(old, new)
    end = _alike(old[begin:][::-1], new[begin:][::-1])
    cut = ["".join(words[begin : len(words) - end]).strip() for words in (old, new)]
    return f"{cut[0]} -> {cut[1]}"


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """Return with how many words both begin."""
    same = (left == right for left, right in zip(one, other, strict=False))
    return len(list(takewhile(bool, same)))


def _words(diff: str, sign: str) -> list[str]:
    lines = [
        line[1:].strip() for line in diff.splitlines() if line[:1] == sign and line[:3] != 3 * sign
    ]
    return re.findall(r"\w+|[<>=!]=|\s+|[^\w\s]", " ".join(lines))


def listed() -> Iterator[Survivor]:
    """Read the list: by the reason, by the function, the changes."""
    for functions in tomllib.loads(LISTED.read_text()).values():
        for function, changes in functions.items():
            for change in changes:
                yield Survivor(function=function, change=change)


def chosen(wanted: Sequence[str]) -> list[str]:
    """Return the modules that are named, or that are in a package which is."""
    return [
        module
        for module in MODULES
        if any(fnmatchcase(module, name) or module.startswith(f"{name}.") for name in wanted)
    ]
