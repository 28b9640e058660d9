"""How many orders one scheduler keeps open at a time: no more than the agents can begin in time (WRK-2).

A claim starts the clock of the complete-by time. Whoever claims faster than the agents work lets requests die in their
queues, counts a failure for each, tries them again on top of all the others, and ends with everything in `Error`. So
orders that find no room stay `Pending`, which costs them nothing.
"""

import asyncio
from collections import deque
from collections.abc import Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from core.ports import Clock

FIRST = 32
"""Before anything is known of the agents, and again after a time without load."""

LEAST = 4
"""Some orders have to be tried, or nobody would notice that the agents have room again."""

LONG_WAIT = 0.25
"""Requests that wait for longer than this share of their time show that too much is open."""

LOOK_INTERVAL = timedelta(seconds=1)
"""How often a scheduler with open orders looks how the agents are doing, and which orders went on elsewhere."""

SHRINKS_TO, GROWS_BY = 0.7, 2


@dataclass(kw_only=True)
class Window:
    """The orders that this instance has claimed and that are not finished, and how many there may be."""

    clock: Clock
    most: int
    size: int = field(init=False)
    _open: dict[str, datetime] = field(default_factory=dict)
    _waiting: deque[tuple[str, asyncio.Future[None]]] = field(default_factory=deque)
    _was_full: bool = False
    _looked_at: datetime | None = None

    def __post_init__(self) -> None:
        self.size = min(FIRST, self.most)

    @property
    def room(self) -> int:
        """How many more orders may be claimed, by those who do not wait in line."""
        return 0 if self._waiting else max(0, self.size - len(self._open))

    def look_is_due(self) -> bool:
        """Whether it is time to see how agents and orders are doing; counts as having looked."""
        now = self.clock()
        if not self._open or (self._looked_at and now - self._looked_at < LOOK_INTERVAL):
            return False
        self._looked_at = now
        return True

    async def enter(self, order_id: str, patience: timedelta = timedelta()) -> bool:
        """Take a place for the order, in turn, or keep the one it has; False if none came free within the time."""
        if order_id in self._open:
            return True
        if self.room:
            self._open[order_id] = self.clock()
            return True
        self._was_full = True
        if not patience:
            return False
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((order_id, place))
        try:
            async with asyncio.timeout(patience.total_seconds()):
                await place
        except TimeoutError:
            return place.done() and not place.cancelled()  # the place may have come in the last moment
        return True

    def leave(self, order_id: str) -> None:
        """Give the order's place to the next in line: it is finished, or it was not to be had."""
        if self._open.pop(order_id, None):
            self._let_in()

    def keep_only(self, running: Set[str], asked_at: datetime) -> None:
        """Give up the places of orders that no longer ran at this time: others have finished them."""
        for order_id, since in list(self._open.items()):
            if since < asked_at and order_id not in running:
                del self._open[order_id]
        self._let_in()

    def adapt(self, waited: float | None) -> None:
        """Set the size by how long requests wait for the agents, None if nobody knows; call it once in a while.

        It grows fast while it is what limits us, shrinks while requests wait, and goes back to the beginning without
        load, because what the agents could do a while ago says nothing about now.
        """
        if waited is not None and waited > LONG_WAIT:
            self.size = max(LEAST, int(self.size * SHRINKS_TO))
        elif not self._was_full:
            self.size = max(FIRST, self.size // GROWS_BY)
        elif waited is not None:
            self.size *= GROWS_BY
        self.size = min(self.size, self.most)
        self._was_full = bool(self._waiting)
        self._let_in()

    def _let_in(self) -> None:
        while self._waiting and len(self._open) < self.size:
            order_id, place = self._waiting.popleft()
            if not place.done():
                self._open[order_id] = self.clock()
                place.set_result(None)
