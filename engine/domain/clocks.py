"""Whether a process's clock agrees with the store's, as far as the store's answers show (FLT-9).

Each answer bears the store's time in whole seconds, from after the request was sent and before the
answer was received. So a clock that showed a later time when the request was sent is ahead, and one
that showed an earlier time when the answer was received is behind. A slow answer or a pause of the
process can cause neither.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

DECISIVE = 3
"""How many answers in sequence decide: one may come from a server whose own clock is off."""

WHOLE = timedelta(seconds=1)
"""The resolution of the store's time, which is cut off to whole seconds."""

SET_MEANWHILE = timedelta(seconds=0.5)
"""The largest difference between the clock and the time that passed.

If they differ by more, the clock was set in between, or the machine stood still.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClockSample:
    """The times of one answer of the store, by its clock and by ours."""

    date: datetime
    """The store's time, in whole seconds."""
    sent: datetime
    received: datetime
    took: timedelta
    """The time from `sent` to `received`, by a monotonic clock."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClockSkew:
    """A clock that is off by more than is tolerated."""

    by: timedelta
    """The least time by which it is ahead of the store's clock, or behind it if negative."""
    since: datetime
    """The store's time of the first answer that showed it."""


def least_skew(answer: ClockSample, tolerance: timedelta) -> timedelta | None:
    """Return the least skew of our clock that the answer proves; negative if it is behind.

    It is zero if it would be within the tolerance, and None if the answer proves nothing.
    """
    if abs(answer.received - answer.sent - answer.took) > SET_MEANWHILE:
        return None
    ahead = answer.sent - (answer.date + WHOLE)
    behind = answer.date - answer.received
    if ahead > tolerance:
        return ahead
    if behind > tolerance:
        return -behind
    return timedelta()


class SkewDetector:
    """Decides from the store's answers whether our clock is off."""

    def __init__(self, tolerance: timedelta) -> None:
        self.skew: ClockSkew | None = None
        """The skew of our clock; None while it agrees with the store's."""
        self._tolerance = tolerance
        self._direction = 0
        """The finding that the last answers agree about: ahead (1), right (0), behind (-1)."""
        self._in_sequence = 0
        self._since: datetime | None = None

    @property
    def settled(self) -> bool:
        """Whether enough answers in sequence agree with each other."""
        return self._in_sequence >= DECISIVE

    def saw(self, answer: ClockSample) -> None:
        """Take one more answer into account."""
        by = least_skew(answer, self._tolerance)
        if by is None:
            return
        if self._since is None or _direction(by) != self._direction:
            self._direction, self._in_sequence, self._since = _direction(by), 0, answer.date
        self._in_sequence += 1
        if self.settled:
            self._decide(by, self._since)

    def _decide(self, by: timedelta, since: datetime) -> None:
        """Keep the skew as it was first seen while it lasts, so that it causes one alert."""
        if not by:
            self.skew = None
        elif self.skew is None or _direction(self.skew.by) != _direction(by):
            self.skew = ClockSkew(by=by, since=since)


def _direction(by: timedelta) -> int:
    return (by > timedelta()) - (by < timedelta())
