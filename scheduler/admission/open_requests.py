"""The open requests of each agent, as one process believes them until the next refresh (WRK-2)."""

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
    """Orders that this process has changed since the refresh began, which does not overrule it."""
    _runs_at: dict[str, Sequence[str]] = field(default_factory=dict)
    """The agents at which the steps of each order run."""
    _count: Counter[str] = field(default_factory=Counter)
    """Number of open requests of each agent, derived from `_runs_at`."""
    _changing: Counter[str] = field(default_factory=Counter)
    """Number of changes of each order that are being written here."""

    def at(self, agent: str) -> int:
        """Return the number of open requests of the agent."""
        return self._count[agent]

    def agents_of(self, order_id: str) -> Sequence[str]:
        """Return the agents at which the steps of the order run."""
        return self._runs_at.get(order_id, ())

    def with_agents(self, order_id: str, agents: Sequence[str]) -> Counter[str]:
        """Return the requests that each agent has if the order's steps run at these agents."""
        count = self._count.copy()
        count.subtract(self.agents_of(order_id))
        count.update(agents)
        return count

    def set_agents(self, order_id: str, agents: Sequence[str]) -> None:
        """Note that the order's steps run at these agents and at no others."""
        self._count = self.with_agents(order_id, agents)
        self._runs_at[order_id] = agents
        self.changed.add(order_id)

    def request_finished(self, order_id: str, agent: str) -> None:
        """Note that the order has no open request at the agent."""
        self.set_agents(order_id, [other for other in self.agents_of(order_id) if other != agent])

    @contextmanager
    def changing(self, order_id: str) -> Iterator[None]:
        """Keep a refresh from overruling the belief about an order while its change is written."""
        self._changing[order_id] += 1
        try:
            yield
        finally:
            self._changing[order_id] -= 1

    def begin_refresh(self) -> None:
        """Count this process's own changes from now on beside what the refresh finds."""
        self._changing = +self._changing
        self.changed = set(self._changing)

    def refresh(self, running: Iterable[IndexRow], unseen: Collection[str]) -> None:
        """Believe what the refresh found, but for changed orders and the `unseen` buckets."""
        seen = {row.order_id: str(row.data.get("Agents", "")).split() for row in running}
        kept = {
            order_id: agents
            for order_id, agents in self._runs_at.items()
            if order_id in self.changed or bucket_of(order_id) in unseen
        }
        self._runs_at = seen | kept
        self._count = Counter(chain.from_iterable(self._runs_at.values()))
