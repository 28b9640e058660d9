"""How many requests one scheduler keeps open at one agent: no more than it can begin in time (WRK-2).

A claim starts the clock of the complete-by time. Whoever claims faster than the agents work lets requests die in their
queues, counts a failure for each, tries them again on top of all the others, and ends with everything in `Error`. So
orders that find no room stay `Pending`, which costs them nothing.
"""

from dataclasses import dataclass, field

FIRST = 32
"""Before anything is known of the agent, and again after a time without load."""

LEAST = 4
"""Some requests have to be tried, or nobody would notice that the agent has room again."""

LONG_WAIT = 0.25
"""Requests that wait for longer than this share of their time show that too much is open."""

SHRINKS_TO, GROWS_BY = 0.7, 2


@dataclass(kw_only=True)
class Window:
    """The number of requests, as it follows the agent's waits."""

    most: int
    size: int = field(init=False)
    was_full: bool = False
    """Whether somebody found no room since the last look."""

    def __post_init__(self) -> None:
        self.size = min(FIRST, self.most)

    def adapt(self, waited: float | None) -> None:
        """Set the size by how long requests wait for the agent, None if nobody knows; call it once in a while.

        It grows fast while it is what limits us, shrinks while requests wait, and goes back to the beginning without
        load, because what the agent could do a while ago says nothing about now.
        """
        if waited is not None and waited > LONG_WAIT:
            self.size = max(LEAST, int(self.size * SHRINKS_TO))
        elif not self.was_full:
            self.size = max(FIRST, self.size // GROWS_BY)
        elif waited is not None:
            self.size *= GROWS_BY
        self.size = min(self.size, self.most)
        self.was_full = False

    def begin_again(self) -> None:
        """Let through only a few: the agent's circuit has opened, and somebody has to try whether it may close."""
        self.size = min(LEAST, self.most)
        self.was_full = False
