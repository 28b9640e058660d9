"""Azd's rule for `.funcignore`, which is not git's: it decides what is sent to Azure."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

ALWAYS_LEFT = {".azure", ".funcignore", "local.settings.json"}
"""What azd never sends, at the top of the project."""


class Pattern(NamedTuple):
    """A line of the file."""

    keeps: bool
    """It begins with `!`: what an earlier line dropped is sent."""
    for_folders: bool
    """It ends in `/`: it matches the folder that it names, and nothing inside of it."""
    of_the_name: bool
    """It is compared with the last part of a path, not with the whole path behind a slash."""
    expression: re.Pattern[str]

    def matches(self, path: PurePosixPath, *, is_folder: bool) -> bool:
        """Return whether this line decides about a path below the project."""
        if self.for_folders and not is_folder:
            return False
        return bool(self.expression.fullmatch(path.name if self.of_the_name else f"/{path}"))


class AzdIgnore:
    """The files of a project that azd sends."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._patterns = [
            pattern_of(line.strip()) for line in lines if line.strip() and not line.startswith("#")
        ]

    def drops(self, path: PurePosixPath, *, is_folder: bool = False) -> bool:
        """Return whether the last matching line drops this path, or one of the folders above it."""
        above = [folder for folder in path.parents if folder.name]
        return self._drops(path, is_folder=is_folder) or any(
            self._drops(folder, is_folder=True) for folder in above
        )

    def _drops(self, path: PurePosixPath, *, is_folder: bool) -> bool:
        if str(path) in ALWAYS_LEFT:
            return True
        matching = [
            pattern for pattern in self._patterns if pattern.matches(path, is_folder=is_folder)
        ]
        return bool(matching) and not matching[-1].keeps

    def sent(self, project: Path) -> Iterator[PurePosixPath]:
        """Yield the files that azd would send; a folder that is dropped is never entered."""
        for parent, folders, names in os.walk(project):
            below = PurePosixPath(Path(parent).relative_to(project))
            folders[:] = [name for name in folders if not self._drops(below / name, is_folder=True)]
            yield from (
                below / name for name in names if not self._drops(below / name, is_folder=False)
            )


def pattern_of(line: str) -> Pattern:
    """Read a line as azd does.

    Without an inner slash, a leading slash means: compare with the whole path, in which `*` takes slashes too.
    """
    keeps, line = line.startswith("!"), line.removeprefix("!")
    for_folders, line = line.endswith("/"), line.removesuffix("/")
    anchored, line = line.startswith("/"), line.removeprefix("/")
    if "/" in line:
        expression = "".join(map(part_of, line.split("/")))
    else:
        expression = "/" * anchored + translated(line, "." if anchored else "[^/]")
    of_the_name = not anchored and "/" not in line
    return Pattern(keeps, for_folders, of_the_name, re.compile(expression, re.DOTALL))


def part_of(part: str) -> str:
    """Translate one part of a pattern with inner slashes: `*` takes no slash, `**` any number of parts."""
    return "(?:/[^/]+)*" if part == "**" else "/" + translated(part, "[^/]")


def translated(pattern: str, any_character: str) -> str:
    """Translate the wildcards `*` and `?`."""
    wild = {"*": f"{any_character}*", "?": any_character}
    return "".join(wild.get(character) or re.escape(character) for character in pattern)
