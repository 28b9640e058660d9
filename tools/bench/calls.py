"""Records which functions of the product a host calls, from a moment that the driver sets."""

import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FrameType

ROOT = Path(__file__).parents[2]
APART = ("tools", "tests", ".venv")
"""Folders of the embedded platform and of the measuring code."""
PARTS_OF_FUNCTIONS = ("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>", "<module>")
SUFFIX, BEGIN = ".calls", "begin"
SWITCH = "BENCH_CALLS"
"""The variable that lets a host record its calls."""

Called = tuple[str, str]
"""A module's path in the repository, and the qualified name of a function in it."""


class Calls:
    """Watches this process. Each function gets a line when it is first called after the beginning."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[CodeType, str | None] = {}
        self._begun = False

    def install(self) -> None:
        """Watch all threads from now on."""
        threading.setprofile(self._watch)
        sys.setprofile(self._watch)

    def _watch(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and self._name(frame.f_code) and self._has_begun():
            self._note(frame.f_code)

    def _name(self, code: CodeType) -> str | None:
        """Return the line for a function of the product. None for any other function, and for a repeat."""
        if code not in self._known:
            self._known[code] = _line(code)
        return self._known[code]

    def _has_begun(self) -> bool:
        self._begun = self._begun or (self._folder / BEGIN).exists()
        return self._begun

    def _note(self, code: CodeType) -> None:
        with (self._folder / f"{threading.get_native_id()}{SUFFIX}").open("a") as file:
            file.write(f"{self._known[code]}\n")
        self._known[code] = None


def _line(code: CodeType) -> str | None:
    path = Path(code.co_filename)
    if not path.is_relative_to(ROOT) or code.co_name in PARTS_OF_FUNCTIONS:
        return None
    place = path.relative_to(ROOT)
    return None if place.parts[0] in APART else f"{place} {code.co_qualname}"


def begin(folder: Path) -> None:
    """Let every host record its calls from now on."""
    (folder / BEGIN).touch()


def called(folder: Path) -> Iterable[Called]:
    """Return what the hosts have called since then, each function once, in order."""
    lines: Iterator[str] = (
        line for path in folder.glob(f"*{SUFFIX}") for line in path.read_text().splitlines()
    )
    apart = (line.partition(" ") for line in dict.fromkeys(lines))
    return [(place, name) for place, _, name in apart]
