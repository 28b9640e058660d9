"""`python -m development.release v1.2.3` prints the changes of this version, if it is the one to release."""

import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from development.faults import DevelopmentCode
from functions_alone.faults import FaultsError, StackFault

ROOT = Path(__file__).parents[2]
CHANGELOG = "CHANGELOG.md"
LINK = re.compile(r"\]\((?![a-z]+:|#)")
"""The beginning of a link to a file of the repository."""


class ReleaseError(FaultsError):
    """A tag cannot be released."""


def notes_of(tag: str, root: Path = ROOT) -> str:
    """Return the entries of the version that the tag names. Raises `ReleaseError`."""
    version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    if tag != f"v{version}":
        raise ReleaseError(
            StackFault(DevelopmentCode.TAG_DIFFERS, tag, {"expected": f"v{version}"})
        )
    _, *sections = re.split(r"^## ", (root / CHANGELOG).read_text(), flags=re.MULTILINE)
    found = dict(section.split("\n", 1) for section in sections)
    if not (notes := found.get(version, "").strip()):
        raise ReleaseError(
            StackFault(DevelopmentCode.NOTES_MISSING, CHANGELOG, {"version": version})
        )
    return notes


def with_links_to(base: str, notes: str) -> str:
    """Return the notes for a page outside the repository, whose files are below this address."""
    return LINK.sub(f"]({base}/", notes)


def main(arguments: Sequence[str]) -> int:
    """Print the notes of a tag. A second argument is the address of the files of that tag."""
    tag, *base = arguments
    try:
        notes = notes_of(tag)
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    print(with_links_to(base[0], notes) if base else notes)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
