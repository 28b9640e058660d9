"""Detection of a process clock that differs from the store's clock (FLT-9).

Each answer of the store has the store's time in whole seconds, taken after the request was sent and
before the answer was received. Our clock is ahead if it showed a later time when the request was
sent. It is behind if it showed an earlier time when the answer was received. A slow answer or a
pause of the process can cause neither result.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

# One answer may come from a server whose own clock is wrong.
DECISIVE = 3
"""The number of consecutive answers that decide."""

WHOLE = timedelta(seconds=1)
"""The resolution of the store's time, which is truncated to whole seconds."""

# With a larger difference, the clock was set in between, or the machine was suspended.
SET_MEANWHILE = timedelta(seconds=0.5)
"""The largest allowed difference between the clock and a monotonic clock during one request."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClockSample:
    """The times of one answer, by the store's clock and by our clock."""

    date: datetime
    """The store's time, in whole seconds."""
    sent: datetime
    received: datetime
    took: timedelta
    """The time between `sent` and `received` by a monotonic clock."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClockSkew:
    """A difference of our clock from the store's clock that exceeds the tolerance."""

    by: timedelta
    """The minimum difference. It is positive if our clock is ahead, and negative if it is
    behind."""
    since: datetime
    """The store's time of the first answer that showed the difference."""


def least_skew(answer: ClockSample, tolerance: timedelta) -> timedelta | None:
    """Return the minimum skew of our clock that the answer proves.

    The skew is negative if the clock is behind, and zero if it may be within the tolerance. Returns
    None if the answer proves nothing.
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
    """Decides from the store's answers whether our clock is wrong."""

    def __init__(self, tolerance: timedelta) -> None:
        self.skew: ClockSkew | None = None
        """The skew of our clock, or None while it agrees with the store's clock."""
        self._tolerance = tolerance
        self._direction = 0
        """The result on which the last answers agree: ahead (1), correct (0) or behind (-1)."""
        self._in_sequence = 0
        self._since: datetime | None = None

    @property
    def settled(self) -> bool:
        """Whether enough consecutive answers agree."""
        return self._in_sequence >= DECISIVE

    def saw(self, answer: ClockSample) -> None:
        by = least_skew(answer, self._tolerance)
        if by is None:
            return
        if self._since is None or _direction(by) != self._direction:
            self._direction, self._in_sequence, self._since = _direction(by), 0, answer.date
        self._in_sequence += 1
        if self.settled:
            self._decide(by, self._since)

    def _decide(self, by: timedelta, since: datetime) -> None:
        if not by:
            self.skew = None
        # A skew that lasts keeps its first value, so it causes one alert.
        elif self.skew is None or _direction(self.skew.by) != _direction(by):
            self.skew = ClockSkew(by=by, since=since)


def _direction(by: timedelta) -> int:
    return (by > timedelta()) - (by < timedelta())
