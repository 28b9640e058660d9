"""Admits waiting orders to agents that have room for their requests."""

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
"""Time between two refreshes of a process that has work to do."""

FAILED_CLAIM_PAUSE = timedelta(seconds=60)
"""Time for which an order is not tried again after a failed claim that is its own fault."""


@dataclass(kw_only=True)
class Admission:
    """What one process believes about the agents and the waiting orders."""

    offers: Mapping[str, Sequence[str]]
    """The agents that offer each capability, the preferred first."""
    capacity: Mapping[str, Capacity]
    """The limits of each agent."""
    policy: AdmissionPolicy
    max_silence: timedelta
    """How long orders wait for silent agents before they are given up (SUP-9)."""
    clock: Clock
    health: Sequence[AgentHealth] = ()
    """Recent health reports of the agents."""
    is_health_known: bool = False
    """Whether the last refresh could read the reports: no agent is silent by old ones."""
    open_requests: OpenRequests = field(default_factory=OpenRequests)
    claim_queue: ClaimQueue = field(default_factory=ClaimQueue)
    has_refreshed: bool = False
    """Whether a refresh has succeeded; until then other processes may use all the capacity."""
    _refresh_began: datetime = NEVER

    def is_refresh_due(self) -> bool:
        """Whether the last refresh began long enough ago, or the clock was put back since."""
        return abs(self.clock() - self._refresh_began) >= REFRESH_INTERVAL

    def begin_refresh(self) -> None:
        """Count this process's own changes from now on beside what the refresh finds."""
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
        """Add new health reports."""
        self.health = with_reports(self.health, reports, self.clock())

    def announce(self, candidate: Candidate) -> None:
        """Add an order whose wake-up arrived here to the waiting orders."""
        self.claim_queue.announce(candidate, self.clock())

    def skip(self, order_id: str) -> None:
        """Leave an order alone that cannot be claimed: the orders behind it may take its slot."""
        self.open_requests.set_agents(order_id, ())
        self.claim_queue.skip(order_id, self.clock() + FAILED_CLAIM_PAUSE)

    def skip_in(self, needs: str, order_id: str, pause: timedelta) -> None:
        """Leave an order alone in one queue; it may be claimed for another of its needs."""
        self.claim_queue.skip(order_id, self.clock() + pause, needs)

    def may_have_capacity(self, order_id: str) -> bool:
        """Whether the order waits, and a refresh might find slots free that were filled here."""
        return order_id in self.claim_queue and bool(self.open_requests.changed)

    def take(self, agent: str | None = None) -> Candidate | None:
        """Take out the order to claim next, with a slot at an agent; None if none may be claimed.

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

        The steps of the order count as running at `runs_at`, and the slots that it holds elsewhere
        as free. The given `reports` count as if they were known.
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
        """Return since when each of the silent agents has left requests unanswered."""
        times = {agent: self._silent_since(agent) for agent in self.capacity}
        return {agent: since for agent, since in times.items() if since}

    def is_served(self, needs: str) -> bool:
        """Whether agents here offer the capability, and not all have been silent for too long."""
        return needs in self.offers and self._given_up_before(needs) == NEVER

    def _given_up_before(self, needs: str) -> datetime:
        """Return since before when orders must have waited that may be given up (SUP-9).

        That is `NEVER` unless all agents of the capability have been silent for too long.
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

        There are none while it makes no calls, and a few between the pauses while it is silent
        (SUP-10).
        """
        if requests_from(health, agent, now):
            return 0
        limit = self.policy.limit(agent, self.capacity[agent], health, now)
        return min(limit, PROBE_REQUESTS) if silence_of(health, agent, now) else limit

    def _leads_to(self, needs: str, agent: str) -> bool:
        """Whether a reply of the agent leads to the orders with this need.

        They are left to the replies of agents that could do them, if one of these has a request.
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
