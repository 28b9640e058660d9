"""The present state of the system for a page that draws it: who acts next for each open order.

A call reads the work index once, the agents' health, the last sweep, and the length of one queue.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from engine.decisions.lists import LISTS, is_first
from engine.domain.errors import UnavailableError
from engine.domain.statuses import STATUS_INFO
from engine.http.models import View
from engine.ports import Clock, TextQueue
from engine.storage.agent_health import AgentHealth, AgentHealthLog, closed_until
from engine.storage.sweeps import Sweep, SweepLog
from operations.api.outbox import OutboxReader, WorkIndexReading
from operations.api.overview import RECENT
from operations.api.requests import SHARED, Reading
from operations.api.views import ListedOrder, listed

SHARED_FOR = timedelta(seconds=0.5)
"""How long a reading of the work index is reused. A page on one machine reads once a second."""

REQUEST = re.compile(r"([^:]+):[^:]+:([0-9]{1,9}):[^:]+")
"""The id of a request: order, step, attempt and action (`engine/domain/messages.py`)."""

OF_OPERATORS = {status for status, info in STATUS_INFO.items() if info.waits_for_operator}
PARKED = {status for status, info in STATUS_INFO.items() if info.is_parked}

MOST_SHOWN = 200
"""The most open orders that are listed one by one. Of more orders, only the counts are shown."""

LONG_AGO = datetime.min.replace(tzinfo=UTC)
"""The time in a row whose time cannot be read."""


class Stands(StrEnum):
    """Who acts next for an open order."""

    SCHEDULER = "scheduler"
    """A scheduler, which claims the order."""
    AGENT = "agent"
    """The agents that have a request of the order, and have not answered it."""
    LATER = "later"
    """Nobody before a time, such as the time of the next attempt."""
    OUTSIDE = "outside"
    """A person or a service outside, from whom an answer is expected."""
    PARKED = "parked"
    """The operator who put the order on hold."""
    OPERATOR = "operator"
    """An operator."""


class LiveRequest(View):
    """A request of an order that its agent has not answered yet."""

    agent: str
    instance: str | None
    """The instance that reports that it has started; null if none has."""


class LiveOrder(View):
    """An open order."""

    order_id: str
    stands: Stands
    situation: str
    """The status of the order, with the names of the vocabulary."""
    step: str | None
    attempt: int | None
    """The number of the attempt at that step, of `threshold`."""
    threshold: int | None
    requests: list[LiveRequest]


class LiveGroup(View):
    """How many orders are at one place. An order on which two agents work counts at both."""

    stands: Stands
    agent: str | None
    step: str | None
    count: int


class Breaker(View):
    """The circuit breaker of an agent over all of its instances, and what else stops calls."""

    agent: str
    open_until: datetime | None
    """Until when no instance makes calls; null if calls can be made."""
    tries_since: datetime | None
    """When the circuit became half-open: one call at a time checks the service. Null if a call has
    succeeded since."""


class LiveInstance(View):
    """A process of the app that has recently reported for an agent."""

    name: str
    at: datetime
    """Its last report."""
    agents: list[str]
    running: int
    """The calls that it had in progress at that time."""


class Live(View):
    """The system at this moment."""

    at: datetime
    """When the data was read."""
    submissions: int | None
    """Approximate number of messages in the submission queue; null if the queue cannot be reached.
    """
    groups: list[LiveGroup]
    """All open orders, by place."""
    at_least: bool
    """Whether there are more open orders than were read."""
    orders: list[LiveOrder] | None
    """The open orders, the oldest first; null if there are more than `MOST_SHOWN`."""
    breakers: list[Breaker]
    """One for each agent."""
    instances: list[LiveInstance]
    last_sweep: Sweep | None


@dataclass(frozen=True, kw_only=True)
class LiveService:
    """Reads the present state of the system."""

    outbox_reader: OutboxReader
    agents: Sequence[str]
    """The names of this app's agents."""
    agent_health: AgentHealthLog
    sweeps: SweepLog
    submissions: TextQueue
    clock: Clock

    async def look(self, reading: Reading = SHARED) -> Live:
        """Show who acts next for each open order.

        Raises `UnavailableError`, alone or in a group.
        """
        pending = await (
            self.outbox_reader.read() if reading.fresh else self.outbox_reader.recent(SHARED_FOR)
        )
        now = self.clock()
        health = await self.agent_health.since(now - RECENT)
        beginners = _beginners(health)
        orders = [_live(order, beginners, now) for order in newest(pending)]
        return Live(
            at=pending.at,
            submissions=await self._submitted(),
            groups=_groups(orders),
            at_least=any(pending.more(kind) for kind in LISTS.values()),
            orders=orders if len(orders) <= MOST_SHOWN else None,
            breakers=[_breaker(name, health, now) for name in self.agents],
            instances=_instances(health),
            last_sweep=await self.sweeps.last(),
        )

    async def _submitted(self) -> int | None:
        try:
            return await self.submissions.waiting()
        except UnavailableError:
            return None


def newest(pending: WorkIndexReading) -> list[ListedOrder]:
    """Return each open order by its newest row, the oldest order first."""
    newest: dict[str, ListedOrder] = {}
    for name, kind in LISTS.items():
        for order in (listed(row, name) for row in pending.rows[kind] if is_first(row)):
            before = newest.get(order.order_id)
            # A row stays unchanged if a later change did not move its key.
            if before is None or _changed(order) > _changed(before):
                newest[order.order_id] = order
    return sorted(newest.values(), key=lambda order: order.placed_at or LONG_AGO)


def _changed(order: ListedOrder) -> datetime:
    return order.updated_at or LONG_AGO


def _live(order: ListedOrder, beginners: Mapping[tuple[str, str], str], now: datetime) -> LiveOrder:
    return LiveOrder(
        order_id=order.order_id,
        stands=_stands(order, now),
        situation=order.situation,
        step=order.step or next(iter(order.failed_steps), None),
        attempt=order.attempt,
        threshold=order.threshold,
        requests=[
            LiveRequest(agent=agent, instance=beginners.get((order.order_id, agent)))
            for agent in order.agents
        ],
    )


def _stands(order: ListedOrder, now: datetime) -> Stands:
    """Return who acts next. If only a newer host knows the order's status, its columns decide."""
    if order.situation in OF_OPERATORS:
        return Stands.OPERATOR
    if order.agents:
        return Stands.AGENT
    if order.situation in PARKED:
        return Stands.PARKED
    if order.waits_for:
        return Stands.OUTSIDE
    return Stands.LATER if order.not_before and order.not_before > now else Stands.SCHEDULER


def _beginners(health: Sequence[AgentHealth]) -> Mapping[tuple[str, str], str]:
    """Return the instance that has begun the last attempt of each order at each agent."""
    found: dict[tuple[str, str], tuple[int, datetime, str]] = {}
    for row in health:
        begun_here = map(REQUEST.fullmatch, row.begun if row.is_report else ())
        # An id in another form, which a newer host may write, is skipped.
        for request in filter(None, begun_here):
            begun = int(request[2]), row.at, row.instance
            about = request[1], row.agent
            found[about] = max(begun, found.get(about, begun))
    return {about: instance for about, (_, _, instance) in found.items()}


def _groups(orders: Sequence[LiveOrder]) -> list[LiveGroup]:
    """Count the orders by who acts next, the largest group first."""
    counted = Counter[tuple[Stands, str | None, str | None]]()
    for order in orders:
        agents = [request.agent for request in order.requests]
        recipients = agents if order.stands is Stands.AGENT else [None]
        counted.update((order.stands, agent, order.step) for agent in recipients)
    return [
        LiveGroup(stands=stands, agent=agent, step=step, count=count)
        for (stands, agent, step), count in counted.most_common()
    ]


def _breaker(agent: str, health: Sequence[AgentHealth], now: datetime) -> Breaker:
    reports = [row for row in health if row.agent == agent and row.is_report]
    newest = max(reports, key=lambda report: report.at, default=None)
    over = newest and newest.open_until if newest and newest.counts_until > now else None
    return Breaker(
        agent=agent,
        open_until=closed_until(health, agent, now),
        tries_since=over if over and over <= now else None,
    )


def _instances(health: Sequence[AgentHealth]) -> list[LiveInstance]:
    """Return each process that has reported, with its newest report for any agent."""
    found: dict[str, list[AgentHealth]] = {}
    for row in health:
        if row.is_report:
            found.setdefault(row.instance, []).append(row)
    return [_instance(name, reports) for name, reports in sorted(found.items())]


def _instance(name: str, reports: Sequence[AgentHealth]) -> LiveInstance:
    return LiveInstance(
        name=name,
        at=max(report.at for report in reports),
        agents=sorted(report.agent for report in reports),
        running=sum(report.running for report in reports),
    )
