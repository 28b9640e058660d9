"""Which agent a step goes to: one that offers what is needed, whose circuit is closed, and that has room (AGT-10)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from core.agenda import NOTHING
from core.measures import Measure, longest_wait, open_until
from core.ports import Clock
from scheduler.window import Window

LOOK_INTERVAL = timedelta(seconds=1)
"""How often a scheduler with open requests looks how the agents are doing, and which orders went on elsewhere."""


@dataclass(frozen=True, slots=True)
class _Place:
    agent: str
    since: datetime


@dataclass(kw_only=True)
class Places:
    """The places at agents that orders of this instance have taken, and how many there are."""

    offers: Mapping[str, Sequence[str]]
    """The agents that offer each capability, the preferred first."""
    clock: Clock
    most: int
    _windows: dict[str, Window] = field(init=False)
    _taken: dict[tuple[str, str], _Place] = field(default_factory=dict)
    """By order and capability."""
    _count: Counter[str] = field(default_factory=Counter)
    _avoided: dict[str, datetime] = field(default_factory=dict)
    """Until when nothing is sent to an agent whose circuit is open."""
    _looked_at: datetime | None = None

    def __post_init__(self) -> None:
        self._windows = {agent: Window(most=self.most) for agents in self.offers.values() for agent in agents}

    def has_room(self, needs: str) -> bool:
        """Whether an order with this need could go on now."""
        return needs == NOTHING or self._with_room(needs) is not None

    def take(self, order_id: str, capability: str) -> str | None:
        """Take a place for the order, or keep the one it has; return the agent, None if there is no room anywhere."""
        mine = self._taken.get((order_id, capability))
        if mine and not self._is_avoided(mine.agent):
            return mine.agent
        self._give_up(order_id, capability)
        agent = self._with_room(capability)
        if agent:
            self._taken[order_id, capability] = _Place(agent, self.clock())
            self._count[agent] += 1
        return agent

    @property
    def any_taken(self) -> bool:
        """Whether any place is taken."""
        return bool(self._taken)

    def held(self, order_id: str) -> frozenset[str]:
        """Return for what the order has places."""
        return frozenset(needs for needs in self.offers if (order_id, needs) in self._taken)

    def release_all_but(self, order_id: str, capabilities: Set[str]) -> bool:
        """Give up the order's places but these; return whether any came free."""
        freed = [needs for needs in self.offers if needs not in capabilities and self._give_up(order_id, needs)]
        return bool(freed)

    def is_any_at_work(self, needs: str) -> bool:
        """Whether an order with this need waits for nothing but room."""
        return needs == NOTHING or any(not self._is_avoided(agent) for agent in self.offers.get(needs, ()))

    def avoid(self, agent: str, until: datetime) -> None:
        """Send nothing to the agent until then, and only a few requests at first."""
        if not self._is_avoided(agent):
            self._windows[agent].begin_again()
        self._avoided[agent] = until

    def look_is_due(self) -> bool:
        """Whether it is time to see how agents and orders are doing; counts as having looked."""
        now = self.clock()
        if self._looked_at and now - self._looked_at < LOOK_INTERVAL:
            return False
        self._looked_at = now
        return True

    def keep_only(self, running: Set[str], asked_at: datetime) -> None:
        """Give up the places of orders that no longer ran at this time: others have gone on with them."""
        for (order_id, capability), place in list(self._taken.items()):
            if place.since < asked_at and order_id not in running:
                self._give_up(order_id, capability)

    def heed(self, measures: Iterable[Measure], now: datetime) -> None:
        """Follow what the agents have told lately."""
        known = list(measures)
        for agent, window in self._windows.items():
            of_agent = [measure for measure in known if measure.agent == agent]
            if until := open_until(of_agent, now):
                self.avoid(agent, until)
            elif not self._is_avoided(agent):
                window.adapt(longest_wait(of_agent))

    def _with_room(self, capability: str) -> str | None:
        for agent in self.offers.get(capability, ()):
            if self._is_avoided(agent):
                continue
            if self._count[agent] < self._windows[agent].size:
                return agent
            self._windows[agent].was_full = True
        return None

    def _is_avoided(self, agent: str) -> bool:
        return agent in self._avoided and self._avoided[agent] > self.clock()

    def _give_up(self, order_id: str, capability: str) -> bool:
        place = self._taken.pop((order_id, capability), None)
        if place:
            self._count[place.agent] -= 1
        return place is not None
