"""The pending orders that one scheduler knows of, in the order in which it claims them (SCH-11).

A mere memory: what is lost with it, the poll finds again.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from core.agenda import NOTHING
from core.orders import Priority

MOST = 1000
"""Orders of one priority and one need; more are left to the poll."""

TURN_OF_NORMAL = 5
"""Each fifth claim goes to an order of normal priority, if one waits, so that none waits for ever."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiting:
    """One pending order."""

    order_id: str
    priority: Priority
    needs: str = NOTHING


@dataclass
class Backlog:
    """First come, first served, among orders of the same priority and need."""

    _lanes: dict[tuple[Priority, str], dict[str, Waiting]] = field(default_factory=lambda: defaultdict(dict))
    _turns: Counter[str] = field(default_factory=Counter)

    def put(self, waiting: Waiting) -> None:
        """Add an order, unless it is there or there are too many already."""
        lane = self._lanes[waiting.priority, waiting.needs]
        if len(lane) < MOST:
            lane.setdefault(waiting.order_id, waiting)

    def __len__(self) -> int:
        return sum(map(len, self._lanes.values()))

    def needs(self) -> Iterator[str]:
        """Return what the waiting orders need."""
        yield from {needs: None for (_, needs), lane in self._lanes.items() if lane}

    def take(self, needs: str) -> Waiting | None:
        """Take out the next order with this need: high priority first, but each so often a normal one."""
        self._turns[needs] += 1
        order = list(Priority) if self._turns[needs] % TURN_OF_NORMAL else list(reversed(Priority))
        lane = next((lane for priority in order if (lane := self._lanes[priority, needs])), None)
        return lane.pop(next(iter(lane))) if lane else None
