"""Admits waiting orders to agents that have capacity for their requests."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from engine.domain.work_index import IndexRow
from engine.ports import Clock
from engine.storage.agent_health import (
    PROBE_REQUESTS,
    AgentHealth,
    requests_from,
    silence_of,
    unresponsive_since,
)
from scheduler.admission.claim_queue import NEVER, Candidate, ClaimQueue
from scheduler.admission.health import with_reports
from scheduler.admission.open_requests import OpenRequests
from scheduler.admission.policy import AdmissionPolicy, Capacity

REFRESH_INTERVAL = timedelta(seconds=1)
"""The time between two refreshes of a process that has work."""

FAILED_CLAIM_PAUSE = timedelta(seconds=60)
"""How long an order is left alone after a failed claim for which the order itself is the reason."""


@dataclass(kw_only=True)
class Admission:
    """What a process believes about the agents and the waiting orders."""

    offers: Mapping[str, Sequence[str]]
    """The agents that offer each capability, the preferred agent first."""
    capacity: Mapping[str, Capacity]
    """The limits of each agent."""
    policy: AdmissionPolicy
    max_silence: timedelta
    """How long orders wait for silent agents before their steps fail (SUP-9)."""
    clock: Clock
    health: Sequence[AgentHealth] = ()
    """The recent health reports of the agents."""
    is_health_known: bool = False
    """Whether the last refresh could read the reports. An agent is never silent by old reports."""
    open_requests: OpenRequests = field(default_factory=OpenRequests)
    claim_queue: ClaimQueue = field(default_factory=ClaimQueue)
    has_refreshed: bool = False
    """Whether a refresh has succeeded. Before that, other processes may be using all capacity."""
    _refresh_began: datetime = NEVER

    def is_refresh_due(self) -> bool:
        """Whether the last refresh began long enough ago, or the clock was put back since then."""
        return abs(self.clock() - self._refresh_began) >= REFRESH_INTERVAL

    def begin_refresh(self) -> None:
        """Begin to collect this process's own changes.

        They count in addition to what the refresh finds.
        """
        self._refresh_began = self.clock()
        self.open_requests.begin_refresh()
        self.claim_queue.begin_refresh()

    def refresh(
        self,
        running: Iterable[IndexRow],
        waiting: Iterable[Candidate],
        health: Sequence[AgentHealth] | None,
        unseen: Collection[str] = (),
    ) -> None:
        """Replace what this process believes by what the refresh found.

        The old belief stays for orders that were changed here since the refresh began, for the
        `unseen` buckets, and for the agents' health if `health` is None.
        """
        self.has_refreshed = True
        self.open_requests.refresh(running, unseen)
        self.is_health_known = health is not None
        if health is not None:  # it has every pause and silence that has not ended
            self.health = [report for report in self.health if report.is_report]
        self.add_reports(health or ())
        changed = self.open_requests.changed
        self.claim_queue.refresh(
            [candidate for candidate in waiting if candidate.order_id not in changed],
            began=self._refresh_began,
            now=self.clock(),
        )

    def add_reports(self, reports: Sequence[AgentHealth]) -> None:
        self.health = with_reports(self.health, reports, self.clock())

    def announce(self, candidate: Candidate) -> None:
        """Add an order whose wake-up arrived here to the waiting orders."""
        self.claim_queue.announce(candidate, self.clock())

    def skip(self, order_id: str) -> None:
        """Skip an order that cannot be claimed, so that the orders behind it may take its slot."""
        self.open_requests.set_agents(order_id, ())
        self.claim_queue.skip(order_id, self.clock() + FAILED_CLAIM_PAUSE)

    def skip_in(self, needs: str, order_id: str, pause: timedelta) -> None:
        """Skip an order in one queue. It may still be claimed for another capability."""
        self.claim_queue.skip(order_id, self.clock() + pause, needs)

    def may_have_capacity(self, order_id: str) -> bool:
        """Whether the order waits, and a refresh might find free slots that were filled here."""
        return order_id in self.claim_queue and bool(self.open_requests.changed)

    def take(self, agent: str | None = None) -> Candidate | None:
        """Take the next order to claim, with a slot at an agent. None if no order may be claimed.

        With `agent`, take only orders to which its reply leads.
        """
        for needs in self.claim_queue.needs:
            if agent is not None and not self._leads_to(needs, agent):
                continue
            free = self._free_slots(needs)
            # An order that no agent here can serve takes no slot: it may be given up (FLT-12).
            slots = len(free) if needs in self.offers else None
            # So does one that has waited too long for agents that are silent (SUP-9).
            if candidate := self.claim_queue.take(needs, slots, self._given_up_before(needs)):
                agents = self.open_requests.agents_of(candidate.order_id)
                self.open_requests.set_agents(candidate.order_id, [*agents, *free[:1]])
                return candidate
        return None

    def capacity_for(
        self, order_id: str = "", runs_at: Sequence[str] = (), reports: Sequence[AgentHealth] = ()
    ) -> Mapping[str, Sequence[str]]:
        """Return the agents that can take steps of the order now, by capability.

        The steps of the order count as running at `runs_at`, and its slots elsewhere as free. The
        given `reports` count as known.
        """
        if not self.has_refreshed:
            return {}
        now = self.clock()
        health = with_reports(self.health, reports, now)
        open_then = self.open_requests.with_agents(order_id, runs_at)
        free = {
            agent for agent in self.capacity if self._limit(agent, health, now) > open_then[agent]
        }
        capacity: dict[str, list[str]] = {}
        for needs, offering in self.offers.items():
            if takers := [agent for agent in offering if agent in free]:
                capacity[needs] = takers
        return capacity

    def silent_agents(self) -> Mapping[str, datetime]:
        """Return the silent agents, each with the time since which requests are unanswered."""
        times = {agent: self._silent_since(agent) for agent in self.capacity}
        return {agent: since for agent, since in times.items() if since}

    def is_served(self, needs: str) -> bool:
        """Whether agents here offer the capability, and not all have been silent for too long."""
        return needs in self.offers and self._given_up_before(needs) == NEVER

    def _given_up_before(self, needs: str) -> datetime:
        """Return the time before which an order must have become ready so that it may fail (SUP-9).

        The time is `NEVER` unless all agents with the capability have been silent for too long.
        """
        limit = self.clock() - self.max_silence
        times = map(self._silent_since, self.offers.get(needs, ()))
        is_unserved = needs in self.offers and all(since and since < limit for since in times)
        return limit if is_unserved else NEVER

    def _silent_since(self, agent: str) -> datetime | None:
        if not self.is_health_known:
            return None
        return unresponsive_since(self.health, agent, self.clock())

    def _limit(self, agent: str, health: Sequence[AgentHealth], now: datetime) -> int:
        """Return how many requests may be open at the agent.

        The limit is zero while the agent makes no calls. While it is silent, a few are allowed
        between pauses (SUP-10).
        """
        if requests_from(health, agent, now):
            return 0
        limit = self.policy.limit(agent, self.capacity[agent], health, now)
        return min(limit, PROBE_REQUESTS) if silence_of(health, agent, now) else limit

    def _leads_to(self, needs: str, agent: str) -> bool:
        """Whether a reply of the agent leads to orders with this need.

        If an agent that offers the capability has a request, these orders are left to its replies.
        """
        offering = self.offers.get(needs, ())
        return agent in offering or not any(map(self.open_requests.at, offering))

    def _free_slots(self, needs: str) -> list[str]:
        """Return the agent of each free slot for a capability, the preferred agent first."""
        slots: list[str] = []
        for agent in self.offers.get(needs, ()):
            allowed = self._limit(agent, self.health, self.clock())
            slots += [agent] * (allowed - self.open_requests.at(agent))
        return slots
