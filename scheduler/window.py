"""How many requests may be open at one agent: no more than it can begin in time (WRK-2).

A claim starts the clock of the complete-by time. Whoever claims faster than the agents work lets requests die in their
queues, counts a failure for each, tries them again on top of all the others, and ends with everything in `Error`. So
orders that find no room stay `Pending`, which costs them nothing.
"""

from collections.abc import Set
from dataclasses import dataclass, field

FIRST = 32
"""Before anything is known of the agent, and again after a time without load."""

LEAST = 4
"""Some requests have to be tried, or nobody would notice that the agent has room again."""

LONG_WAIT = 0.25
"""Requests that wait for longer than this share of their time show that too much is open."""

SHRINKS_TO, GROWS_BY = 0.7, 2


@dataclass(kw_only=True)
class ConcurrencyWindow:
    """The limit of open requests, as it follows what becomes of them."""

    most: int
    limit: int = field(init=False)
    peak: int = 0
    """The most that was open since the limit was set."""
    _since: Set[str] | None = None
    """What was seen open since then; None before the first look."""

    def __post_init__(self) -> None:
        self.limit = min(FIRST, self.most)

    def adapt(self, now_open: Set[str], waited: float | None) -> None:
        """Set the limit by what is open in the whole system, and by how long requests wait, None if nobody knows.

        How long requests wait that a new limit let in shows only once they begin. So it stays as it is until as many
        as are open have been answered since: else it would grow, look by look, while a slow agent has not begun any of
        them. Without load it goes back to the beginning, because what the agent could do a while ago says
        nothing about now.
        """
        count = len(now_open)
        self.peak = max(self.peak, count)
        if self._since is None:  # this instance has just begun: others have found out how much may be open
            self.limit = max(self.limit, count)
        since = now_open | (self._since or set())
        if len(since) < 2 * count:
            self._since = since
            return
        if waited is not None and waited > LONG_WAIT:
            self.limit = max(LEAST, int(self.limit * SHRINKS_TO))
        elif 2 * self.peak < self.limit:
            self.limit = max(min(FIRST, self.limit), self.limit // GROWS_BY)
        elif waited is not None:
            self.limit *= GROWS_BY
        self.limit = min(self.limit, self.most)
        self.peak, self._since = count, now_open

    def begin_again(self) -> None:
        """Let through only a few: the agent's circuit has opened, and somebody has to try whether it may close."""
        self.limit, self.peak = min(LEAST, self.most), 0
