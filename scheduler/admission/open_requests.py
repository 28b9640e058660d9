"""The open requests of each agent, as one process believes until its next refresh (WRK-2)."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain

from engine.domain.keys import bucket_of
from engine.domain.work_index import IndexRow


@dataclass(kw_only=True)
class OpenRequests:
    """The agents at which the steps of each order run, and so the requests of each agent."""

    changed: set[str] = field(default_factory=set)
    """Orders that this process has changed since the refresh began. The refresh does not replace
    them."""
    _runs_at: dict[str, Sequence[str]] = field(default_factory=dict)
    """The agents at which the steps of each order run."""
    _count: Counter[str] = field(default_factory=Counter)
    """The number of open requests of each agent, derived from `_runs_at`."""
    _changing: Counter[str] = field(default_factory=Counter)
    """The number of changes of each order that are being written here."""

    def at(self, agent: str) -> int:
        return self._count[agent]

    def agents_of(self, order_id: str) -> Sequence[str]:
        return self._runs_at.get(order_id, ())

    def with_agents(self, order_id: str, agents: Sequence[str]) -> Counter[str]:
        """Return the number of requests of each agent if the order's steps run at these agents."""
        count = self._count.copy()
        count.subtract(self.agents_of(order_id))
        count.update(agents)
        return count

    def set_agents(self, order_id: str, agents: Sequence[str]) -> None:
        """Record that the order's steps run at these agents and at no others."""
        self._count = self.with_agents(order_id, agents)
        self._runs_at[order_id] = agents
        self.changed.add(order_id)

    def request_finished(self, order_id: str, agent: str) -> None:
        """Record that the order has no open request at the agent."""
        self.set_agents(order_id, [other for other in self.agents_of(order_id) if other != agent])

    @contextmanager
    def changing(self, order_id: str) -> Iterator[None]:
        """Keep a refresh from replacing the belief about an order while its change is written."""
        self._changing[order_id] += 1
        try:
            yield
        finally:
            self._changing[order_id] -= 1

    def begin_refresh(self) -> None:
        """Begin to collect this process's own changes.

        They count in addition to what the refresh finds.
        """
        self._changing = +self._changing
        self.changed = set(self._changing)

    def refresh(self, running: Iterable[IndexRow], unseen: Collection[str]) -> None:
        """Replace the belief by what was found, except for changed orders and `unseen` buckets."""
        seen = {row.order_id: str(row.data.get("Agents", "")).split() for row in running}
        kept = {
            order_id: agents
            for order_id, agents in self._runs_at.items()
            if order_id in self.changed or bucket_of(order_id) in unseen
        }
        self._runs_at = seen | kept
        self._count = Counter(chain.from_iterable(self._runs_at.values()))
