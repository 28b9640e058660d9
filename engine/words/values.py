"""Values in texts: times and lists as people read them."""

from collections.abc import Sequence
from datetime import datetime
from functools import reduce

from engine.words.catalogue import text

CLOCK = "%Y-%m-%d %H:%M:%S UTC"
TO_THE_MINUTE = "%Y-%m-%d %H:%M UTC"


def clock(time: datetime) -> str:
    return f"{time:{CLOCK}}"


def all_of(parts: Sequence[str]) -> str:
    """Return the parts joined with "and", or empty if there are none."""
    return _joined("join.and", parts)


def one_of(parts: Sequence[str]) -> str:
    """Return the parts joined with "or", or empty if there are none."""
    return _joined("join.or", parts)


def names_of(parts: Sequence[str]) -> str:
    """Return the parts with commas, or a text that says that there are none."""
    return ", ".join(parts) or text("join.none")


def _joined(key: str, parts: Sequence[str]) -> str:
    return reduce(lambda left, right: text(key, left=left, right=right), parts) if parts else ""
