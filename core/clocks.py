"""Whether a process's clock agrees with the store's, as far as the answers of the store prove anything (FLT-9).

Each answer bears the store's time in whole seconds. The store wrote it after the request was sent, and before the
answer was received. So however slow the answer is, and however long the process paused meanwhile: only a clock that is
ahead can have shown a later time when the request was sent, and only one that is behind an earlier time when the answer
was received.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

DECISIVE = 3
"""So many answers in sequence decide: a single one may come from a server whose own clock is off."""

WHOLE = timedelta(seconds=1)
"""The store's time is cut off to whole seconds."""

SET_MEANWHILE = timedelta(seconds=0.5)
"""If the clock and the time that passed differ by more, the clock was set in between, or the machine stood still."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """When the store answered by its own clock, and by ours."""

    date: datetime
    """The store's time, in whole seconds."""
    sent: datetime
    received: datetime
    took: timedelta
    """How long it took from `sent` to `received`, by a clock that nobody sets."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClockSkew:
    """A clock that is off by more than is tolerated."""

    by: timedelta
    """At least so far ahead of the store's clock, or behind it if negative."""
    since: datetime
    """The store's time of the first answer that showed it."""


def least_skew(answer: Answer, tolerance: timedelta) -> timedelta | None:
    """Return how far our clock is off at least, if that is more than is tolerated: negative if it is behind.

    Zero if the answer agrees with our clock; None if it proves nothing.
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
    """What the answers so far say of our clock."""

    def __init__(self, tolerance: timedelta) -> None:
        self.skew: ClockSkew | None = None
        """How far our clock is off; None while it agrees with the store's."""
        self._tolerance = tolerance
        self._direction = 0
        """What the last answers agree about: ahead (1), right (0), behind (-1)."""
        self._in_sequence = 0
        self._since: datetime | None = None

    @property
    def settled(self) -> bool:
        """Whether the last answers agree with each other, and are enough to decide."""
        return self._in_sequence >= DECISIVE

    def saw(self, answer: Answer) -> None:
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
        """Keep the skew as it was first seen, for as long as it lasts: it is one, and told of once."""
        if not by:
            self.skew = None
        elif self.skew is None or _direction(self.skew.by) != _direction(by):
            self.skew = ClockSkew(by=by, since=since)


def _direction(by: timedelta) -> int:
    return (by > timedelta()) - (by < timedelta())
