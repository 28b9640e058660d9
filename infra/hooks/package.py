"""The package for the deployment: its place, and the stamp that says what it was made from.

On Azure, engine/runtime/packed.py reads the first line of the stamp.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from parameters import app_option
from programs import ROOT

FOLDER = ROOT / ".python_packages"
PARTIAL = ROOT / ".python_packages.partial"
"""The folder in which a package is made. Its content is incomplete."""
STAMP = "packed-for.txt"
PLATFORM = "linux x86_64"
REQUIREMENTS = ROOT / "requirements.txt"


class Stamp(NamedTuple):
    """The origin of a package."""

    python: str
    digest: str
    """SHA-256 of requirements.txt."""

    def text(self) -> str:
        """Return the lines of the stamp's file."""
        return "{} {}\nsha256 {}\n".format(self.python, PLATFORM, self.digest)


def read(text: str) -> Stamp:
    """Return the stamp in the text of its file."""
    lines = [line.split(" ") for line in text.splitlines()] + [[], []]
    return Stamp("".join(lines[0][:1]), "".join(lines[1][1:]))


def digest() -> str:
    """Return the digest of the present requirements.txt, whatever its line ends."""
    return hashlib.sha256(REQUIREMENTS.read_text(encoding="utf-8").encode()).hexdigest()


def chosen_python() -> str:
    """Return the version of Python that will be provisioned."""
    return str(app_option("pythonVersion"))
