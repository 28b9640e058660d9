"""How many orders one scheduler keeps open at a time: no more than the agents can finish in time (WRK-2).

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
"""Before anything is known of the agents."""

PERIODS = 4
"""How often the size is set anew within the time that a step is allowed."""

LEAST = 4
"""Some orders have to be tried, or nobody would notice that the agents work again."""


@dataclass(kw_only=True)
class Window:
    """The orders that this instance has claimed and that are not finished, and how many there may be.

    Its size follows from what was finished lately: twice as much as in the last period, a quarter of the time that a
    step is allowed. So what is open is done within half of that time, however fast or slow the agents are.
    """

    clock: Clock
    allowance: timedelta
    most: int
    size: int = field(init=False)
    _open: dict[str, datetime] = field(default_factory=dict)
    _waiting: deque[tuple[str, asyncio.Future[None]]] = field(default_factory=deque)
    _finished: int = 0
    _was_full: bool = False
    _since: datetime | None = None
    _counted_at: datetime | None = None

    def __post_init__(self) -> None:
        self.size = min(FIRST, self.most)

    @property
    def period(self) -> timedelta:
        """How long the window keeps its size."""
        return self.allowance / PERIODS

    def should_recount(self, at_most_every: timedelta) -> bool:
        """Whether it is time to ask which of the open orders still run; counts as having asked."""
        now = self.clock()
        if not self._open or (self._counted_at and now - self._counted_at < at_most_every):
            return False
        self._counted_at = now
        return True

    @property
    def room(self) -> int:
        """How many more orders may be claimed, by those who do not wait in line."""
        return 0 if self._waiting else max(0, self.size - len(self._open))

    async def enter(self, order_id: str, patience: timedelta = timedelta()) -> bool:
        """Take a place for the order, in turn, or keep the one it has; False if none came free within the time."""
        if order_id in self._open:
            return True
        self._resize()
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

    def leave(self, order_id: str, *, finished: bool) -> None:
        """Give the order's place to the next in line: it is finished, or it was not to be had."""
        if self._open.pop(order_id, None):
            self._finished += finished
            self._resize()
            self._let_in()

    def keep_only(self, running: Set[str], asked_at: datetime) -> None:
        """Give up the places of orders that no longer ran at this time: others have finished them.

        Those that have been open for longer than a step may take count for nothing: perhaps their time ran out.
        """
        for order_id, since in list(self._open.items()):
            if since < asked_at and order_id not in running:
                self.leave(order_id, finished=asked_at - since < PERIODS * self.period)
        self._resize()
        self._let_in()

    def _let_in(self) -> None:
        while self._waiting and len(self._open) < self.size:
            order_id, place = self._waiting.popleft()
            if not place.done():
                self._open[order_id] = self.clock()
                place.set_result(None)

    def _resize(self) -> None:
        """At the end of a period, set the size by what was finished in it; without load, back to the beginning."""
        now = self.clock()
        if self._since is not None and now - self._since < self.period:
            return
        if self._since is not None:
            by_rate = 2 * self._finished
            self.size = max(LEAST, by_rate) if self._was_full else max(FIRST, min(self.size, by_rate))
            self.size = min(self.most, self.size)
        self._since, self._finished, self._was_full = now, 0, False
