"""Which orders may be claimed now, and which agents take their steps (SCH-11, AGT-10, WRK-2).

Every process applies three rules to what its last look found and to its own changes since then:

1. `limit` bounds the open requests of each agent, from the rate at which the agent works.
2. Orders that need the same capability wait in one queue, in an order that is the same in every
   process: high priority before normal priority, but every fifth turn is a normal one. Within a
   priority, the order that has waited longest comes first.
3. The free slots belong to the head of the queue. So processes that look at the same time choose
   the same orders.

A wrong belief lasts until the next look.
"""

import math
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain, islice

from engine.domain.keys import bucket_of
from engine.domain.messages import AgentReply
from engine.domain.submitted_order import Priority
from engine.domain.work_index import NO_AGENT, IndexRow
from engine.ports import Clock
from engine.storage.agent_health import FRESH, AgentHealth, closed_until

REFRESH_INTERVAL = timedelta(seconds=1)
"""Time between two looks of a process that has work to do."""

PROBE_REQUESTS = 3
"""Requests beyond the known rate, which show whether an agent works again or can do more."""

PREFETCH_FRACTION = 0.3
"""Share of an attempt's time for which requests may queue at an agent."""

NORMAL_PRIORITY_SHARE = 5
"""Every fifth claim takes an order of normal priority, if one waits, so that none starves."""

HEALTH_MAX_AGE = timedelta(minutes=1)
"""Age up to which reports about an agent's health are read and remembered."""

ANNOUNCED_FOR = timedelta(seconds=5)
"""Time for which only the process that received an order's wake-up claims the order."""

PASSED_OVER = timedelta(seconds=60)
"""Time for which an order is not tried again after a failed claim that is its own fault."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """An order that may be claimed."""

    order_id: str
    priority: Priority = Priority.NORMAL
    needs: str = NO_AGENT
    """The capability for which it needs an agent."""
    since: datetime
    """When it began to wait."""
    fresh: bool = False
    """Whether its wake-up was just sent: only the process that receives it claims the order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Capacity:
    """The declared limits of an agent, which hold before it reports anything."""

    most: int
    """Maximum number of open requests, whatever rate it reports."""
    first: int
    """Maximum while its health is unknown: enough failures to open the circuit, and no more."""
    allowance: timedelta
    """How long an attempt may take: the shortest time of its steps."""


def open_at(rate: float, allowance: timedelta) -> int:
    """Return how many requests may be open at an agent that begins so many a second.

    So many begin in the share `PREFETCH_FRACTION` of an attempt's time, and `PROBE_REQUESTS` more.
    """
    return PROBE_REQUESTS + math.ceil(rate * allowance.total_seconds() * PREFETCH_FRACTION)


def limit(health: Sequence[AgentHealth], agent: str, capacity: Capacity, now: datetime) -> int:
    """Return how many requests may be open at the agent.

    The limit is zero while the agent makes no calls. While nothing is known of the agent, neither a
    rate nor trouble, it is the number of failures that opens the circuit. Otherwise it is the
    number of requests that the agent begins, at the rate it reports, in the share
    `PREFETCH_FRACTION` of an attempt's time, so that all begin in time, and `PROBE_REQUESTS` more.
    """
    if closed_until(health, agent, now):
        return 0
    reports = [row for row in health if row.agent == agent]
    rates = [report.rate for report in reports if now - report.at < FRESH]
    in_trouble = any(
        report.open_until or report.paused_until or report.unresponsive_since for report in reports
    )
    if not rates and not in_trouble:
        return min(capacity.most, capacity.first)
    return min(capacity.most, open_at(sum(rates), capacity.allowance))


def health_from_reply(reply: AgentReply, agent: str, now: datetime) -> Sequence[AgentHealth]:
    """Return the agent's health as its reply shows it; empty unless the circuit is open."""
    if not reply.circuit_open:
        return ()
    until = now + timedelta(seconds=reply.retry_after)
    report = AgentHealth(
        agent=agent,
        instance=reply.instance,
        at=now,
        open_until=until,
        paused_until=until if reply.throttled else None,
    )
    return (report,)


@dataclass(kw_only=True)
class Admission:
    """What one process believes about the open requests of each agent and the waiting orders."""

    offers: Mapping[str, Sequence[str]]
    """The agents that offer each capability, the preferred first."""
    capacity: Mapping[str, Capacity]
    """The limits of each agent."""
    clock: Clock
    health: Sequence[AgentHealth] = ()
    """Recent health reports of the agents."""
    has_refreshed: bool = False
    """Whether a refresh has succeeded; until then other processes may use all the capacity."""
    _refreshed_at: datetime | None = None
    _runs_at: dict[str, Sequence[str]] = field(default_factory=dict)
    """The agents at which the steps of each order run."""
    _open: Counter[str] = field(default_factory=Counter)
    """Number of open requests of each agent, derived from `_runs_at`."""
    _touched: set[str] = field(default_factory=set)
    """Orders that this process has changed since the look began: the look does not overrule it."""
    _at_work: Counter[str] = field(default_factory=Counter)
    """Number of changes of each order that are under way here."""
    _queues: dict[str, dict[str, Candidate]] = field(default_factory=dict)
    """The waiting orders by the capability they need, in the order in which they get slots."""
    _announced: dict[str, datetime] = field(default_factory=dict)
    """When the wake-up of each order arrived here."""
    _turns: Counter[str] = field(default_factory=Counter)
    """Number of orders taken from each queue."""
    _passed_over: dict[tuple[str, str | None], datetime] = field(default_factory=dict)
    """Orders that are not tried now, in one queue or in all (None), and until when."""
    _has_left: bool = False
    """Whether an order that was announced here was left behind since the last look."""

    # The open requests

    def begin_refresh(self, *, at_once: bool = False) -> bool:
        """Begin a look if one is due; return whether it is.

        From now on, this process's own changes count beside what the look finds. A look is also due
        if the clock was put back.
        """
        now = self.clock()
        if not at_once and self._refreshed_at and abs(now - self._refreshed_at) < REFRESH_INTERVAL:
            return False
        self._refreshed_at = now
        self._has_left = False
        self._at_work = +self._at_work
        self._touched = set(self._at_work)
        return True

    def refresh(
        self,
        running: Iterable[IndexRow],
        waiting: Iterable[Candidate],
        health: Sequence[AgentHealth] | None,
        unseen: Collection[str] = (),
    ) -> None:
        """Replace what this process believes by what the look found.

        The old belief stays for orders that were changed here since the look began, for the
        `unseen` buckets, and for the agents' health if `health` is None.
        """
        self.has_refreshed = True
        seen = {row.order_id: str(row.data.get("Agents", "")).split() for row in running}
        known = {
            name: agents
            for name, agents in self._runs_at.items()
            if name in self._touched or bucket_of(name) in unseen
        }
        self._runs_at = seen | known
        self._open = Counter(chain.from_iterable(self._runs_at.values()))
        if health is not None:  # a look finds every hold that has not been ended
            self.health = [report for report in self.health if report.paused_by is None]
        self.add_reports(health or ())
        self._line_up(
            [candidate for candidate in waiting if candidate.order_id not in self._touched]
        )

    def add_reports(self, reports: Sequence[AgentHealth]) -> None:
        """Add new health reports."""
        self.health = self._with_reports(reports)

    def _with_reports(self, reports: Sequence[AgentHealth]) -> Sequence[AgentHealth]:
        """Return the known health with these reports in place of the instances' older ones."""
        if not reports:
            return self.health
        oldest = self.clock() - HEALTH_MAX_AGE
        reporting = {(report.agent, report.instance) for report in reports}
        kept = [
            row
            for row in self.health
            if row.counts_until > oldest and (row.agent, row.instance) not in reporting
        ]
        return [*reports, *kept]

    @contextmanager
    def at_work(self, order_id: str) -> Iterator[None]:
        """Keep a look from overruling the belief about an order while its change is written."""
        self._at_work[order_id] += 1
        try:
            yield
        finally:
            self._at_work[order_id] -= 1

    def set_agents(self, order_id: str, agents: Sequence[str]) -> None:
        """Note that the order's steps run at these agents and at no others."""
        self._open.subtract(self._runs_at.get(order_id, ()))
        self._runs_at[order_id] = agents
        self._touched.add(order_id)
        self._open.update(agents)

    def request_finished(self, order_id: str, agent: str) -> None:
        """Note that the order has no open request at the agent."""
        self.set_agents(
            order_id, [other for other in self._runs_at.get(order_id, ()) if other != agent]
        )

    def capacity_for(
        self, order_id: str = "", runs_at: Sequence[str] = (), reports: Sequence[AgentHealth] = ()
    ) -> Mapping[str, Sequence[str]]:
        """Return the agents that can take steps of the order now, by capability.

        The steps of the order count as running at `runs_at`, and the slots that it holds elsewhere
        as free. The given `reports` count as if they were known.
        """
        if not self.has_refreshed:
            return {}
        health, open_then = self._with_reports(reports), self._open.copy()
        open_then.subtract(self._runs_at.get(order_id, ()))
        open_then.update(runs_at)
        now = self.clock()
        free = {
            name
            for name, slots in self.capacity.items()
            if limit(health, name, slots, now) > open_then[name]
        }
        capacity: dict[str, list[str]] = {}
        for needs, offering in self.offers.items():
            if takers := [agent for agent in offering if agent in free]:
                capacity[needs] = takers
        return capacity

    def _free(self, agent: str) -> int:
        allowed = limit(self.health, agent, self.capacity[agent], self.clock())
        return max(0, allowed - self._open[agent])

    # The waiting orders

    def announce(self, candidate: Candidate) -> None:
        """Add an announced order behind those that the look saw, unless it is among them."""
        self._announced[candidate.order_id] = self.clock()
        self._queues.setdefault(candidate.needs, {}).setdefault(candidate.order_id, candidate)

    def leave_behind(self, order_id: str) -> bool:
        """Whether the order still waits, and is the first such order since the last look.

        A repeated wake-up for one order is enough to lead this process to all waiting orders.
        """
        is_first = self._waits(order_id) and not self._has_left
        self._has_left |= is_first
        return is_first

    def may_have_capacity(self, order_id: str) -> bool:
        """Whether the order waits, and a look might find slots free that were filled here since."""
        return self._waits(order_id) and bool(self._touched)

    def _waits(self, order_id: str) -> bool:
        return any(order_id in queue for queue in self._queues.values())

    def take(self, agent: str | None = None) -> Candidate | None:
        """Take out the order to claim next, with a slot at an agent; None if none may be claimed.

        With `agent`, take only orders to which its reply leads. An order that is left to the
        process with its wake-up keeps its slot.
        """
        for needs, queue in self._queues.items():
            if agent is not None and not self._leads_to(needs, agent):
                continue
            free = self._free_slots(needs)
            # An order that no agent here can serve takes no slot: it may be given up (FLT-12).
            first = islice(queue.values(), len(free) if needs in self.offers else len(queue))
            if candidate := next(filter(self._is_to_take, first), None):
                order_id = candidate.order_id
                del queue[order_id]
                self._turns[needs] += 1
                self.set_agents(order_id, [*self._runs_at.get(order_id, ()), *free[:1]])
                return candidate
        return None

    def _leads_to(self, needs: str, agent: str) -> bool:
        """Whether a reply of the agent leads to the orders with this need.

        They are left to the replies of agents that could do them, if one of these has a request.
        """
        offering = self.offers.get(needs, ())
        return agent in offering or not any(self._open[offered] for offered in offering)

    def _free_slots(self, needs: str) -> list[str]:
        """Return the agent of each free slot for a capability, the preferred agent first."""
        slots: list[str] = []
        for agent in self.offers.get(needs, ()):
            slots += [agent] * self._free(agent)
        return slots

    def _is_to_take(self, candidate: Candidate) -> bool:
        return not candidate.fresh or candidate.order_id in self._announced

    def skip(self, order_id: str) -> None:
        """Leave an order alone that cannot be claimed: the orders behind it may take its slot."""
        self.set_agents(order_id, ())
        self._passed_over[order_id, None] = self.clock() + PASSED_OVER

    def skip_in(self, needs: str, order_id: str, pause: timedelta) -> None:
        """Leave an order alone in one queue; it may be claimed for another of its needs."""
        self._passed_over[order_id, needs] = self.clock() + pause

    def is_skipped(self, order_id: str, needs: str | None = None) -> bool:
        """Whether the order is left alone now, wherever it waits or in the queue of this need."""
        return bool({(order_id, None), (order_id, needs)} & self._passed_over.keys())

    def _line_up(self, waiting: Sequence[Candidate]) -> None:
        """Rebuild the queues from these orders and from those announced since the look began."""
        now = self.clock()
        self._passed_over = {
            name: until for name, until in self._passed_over.items() if until > now
        }
        self._announced = {
            name: at for name, at in self._announced.items() if abs(now - at) < ANNOUNCED_FOR
        }
        waited = chain.from_iterable(queue.values() for queue in self._queues.values())
        announced = [candidate for candidate in waited if self._is_news(candidate)]
        self._queues = {}
        for needs in sorted({candidate.needs for candidate in waiting}):
            high, normal = (_lane(waiting, needs, priority) for priority in Priority)
            in_turns = _in_turns(high, normal, self._turns[needs])
            self._queues[needs] = {candidate.order_id: candidate for candidate in in_turns}
        for candidate in announced:
            self._queues.setdefault(candidate.needs, {}).setdefault(candidate.order_id, candidate)

    def _is_news(self, candidate: Candidate) -> bool:
        """Whether it was announced here since the last look began: the look may have missed it."""
        announced_at = self._announced.get(candidate.order_id)
        return bool(announced_at and self._refreshed_at and announced_at >= self._refreshed_at)


def _lane(waiting: Iterable[Candidate], needs: str, priority: Priority) -> deque[Candidate]:
    """Return the waiting orders of one lane, the oldest first."""
    lane = (
        candidate
        for candidate in waiting
        if (candidate.needs, candidate.priority) == (needs, priority)
    )
    return deque(sorted(lane, key=lambda candidate: (candidate.since, candidate.order_id)))


def _in_turns(high: deque[Candidate], normal: deque[Candidate], taken: int) -> Iterator[Candidate]:
    """Yield high priority before normal, but a normal order at every fifth turn.

    `taken` is the number of turns before these.
    """
    while high or normal:
        taken += 1
        is_turn_of_normal = taken % NORMAL_PRIORITY_SHARE == 0 or not high
        yield (normal if normal and is_turn_of_normal else high).popleft()
