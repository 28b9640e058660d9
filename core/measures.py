"""What an agent tells of itself, so that no more is asked of it than it can do in time (AGT-10, WRK-2)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """How one instance of an agent is doing."""

    agent: str
    instance: str
    at: datetime
    waited: float
    """The longest that a request waited lately before its work began, as a share of the time that it had (0 to 1)."""
    running: int
    """Calls in progress."""


def longest_wait(measures: Iterable[Measure]) -> float | None:
    """Return the largest of the waits; None without any measure."""
    return max((measure.waited for measure in measures), default=None)
