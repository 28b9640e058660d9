"""What some tests need of the machine, and what becomes of them without it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.browsers import UNPACKED, NoBrowserError, browser_here


def browser_program(environment: Mapping[str, str], unpacked: Path = UNPACKED) -> str:
    """Return the browser; without one, skip the test, but fail it where CI runs."""
    try:
        return browser_here(environment, unpacked)
    except NoBrowserError as reason:
        (pytest.fail if environment.get("CI") else pytest.skip)(str(reason))


def faketime_library(libraries: Path = Path("/usr/lib")) -> Path:
    """Return the library that moves the clock of a process; skip the test without it."""
    found = next(libraries.glob("*/faketime/libfaketimeMT.so.1"), None)
    return found or pytest.skip("there is no faketime; on Debian: apt-get install faketime")
