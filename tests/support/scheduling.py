"""Scheduler instances on one store in memory, and agents that work as fast as the test says."""

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from agents.health import MOST_BEGUN, Rate
from engine.decisions.transitions import HistoryEntry, Transition
from engine.declarations.workflow import StepDefinition, WorkflowDefinition, Workflows
from engine.domain.messages import AgentRequest, decode, requests_queue
from engine.domain.statuses import ProcessState
from engine.storage.agent_health import AgentHealth
from testkit.memory import in_memory
from tests.support.apps import app
from tests.support.builders import NOW, answer_to, orders, seconds, some

NEEDS = ("payment", "inventory", "shipping")

FIRST = 10
"""Requests for an agent of which nothing is known: as many orders as open its circuit."""


def step(name, *after, capability=None, timeout=None):
    """A step that asks for nothing in particular."""
    return StepDefinition(
        name=name,
        capability=capability or name,
        operation="do",
        request=lambda order, results: {},
        after=after,
        timeout=timeout,
    )


def only(need, timeout=None):
    """The workflow that is named like the need, and needs nothing else."""
    return WorkflowDefinition(name=need, version=1, steps=(step(need, timeout=timeout),))


class Scheduling:
    """Any number of instances, a clock that the test holds, and orders that were recorded by somebody else."""

    def __init__(self, *extra, offers=None, most=50, buckets=8):
        self.now, self.most, self.buckets = NOW, most, buckets
        self.offers = offers or {need: (need,) for need in NEEDS}
        self.parts = in_memory(clock=lambda: self.now)
        self.workflows = Workflows(
            *extra,
            *(
                only(need)
                for need in NEEDS
                if need not in {definition.name for definition in extra}
            ),
        )
        self.numbers, self.reported = iter(range(10**9)), {}
        there = app(self.parts, buckets=buckets)
        self.store, self.agent_health = there.engine.store, there.engine.agent_health

    def instance(self, name="one", most=None):
        return self.app(instance_id=name, most=most).engine.scheduler

    def app(self, most=None, **settings):
        """All roles of an instance, on the stores that all instances share; services take `most` calls at a time."""
        there = app(
            self.parts,
            workflows=self.workflows,
            offers=self.offers,
            buckets=self.buckets,
            declared={"calls_in_flight": most or self.most},
            **settings,
        )
        there.engine.store = there.operations.background_store = self.store
        there.engine.agent_health = self.agent_health
        return there

    def made(self, workflow="payment", bucket="b03", *, since=None, to=orders.pending, **details):
        """An order that waits since that time, by default since now, and is moved to a state."""
        since = since or self.now
        details = {
            "order_id": f"{bucket}-{next(self.numbers):026d}",
            "ready_since": since,
            "updated_at": since - seconds(60),
        } | details
        known = self.workflows.latest(workflow)
        if known:
            return to(orders.on(known, **details))
        return to(orders.new(workflow=workflow, **details))

    async def record(self, *what, at=None, **more):
        """Record one order, which is announced to nobody; return its id."""
        order = self.made(*what, **more)
        entry = HistoryEntry(at=at or self.now, actor="t", events=some("submitted"))
        await self.store.commit(Transition(before=None, after=order, entry=entry))
        return order.order_id

    async def load(self, order_id):
        return await self.store.load(order_id)

    async def pending(self, order_ids):
        """Those of the orders that are still to be claimed."""
        return [
            order_id
            for order_id in order_ids
            if (await self.load(order_id)).process_state is ProcessState.PENDING
        ]

    def requests(self, agent="payment"):
        """Take all requests to the agent out of its queue."""
        sent, self.parts.bus.sent = self.parts.bus.sent, []
        self.parts.bus.sent += [
            message for message in sent if message.queue != requests_queue(agent)
        ]
        return [
            decode(AgentRequest, message.body)
            for message in sent
            if message.queue == requests_queue(agent)
        ]

    async def keep_busy(self, *agents):
        """Let the agents say once and for all that they begin as much as they may be asked."""
        for agent in agents or [name for names in self.offers.values() for name in names]:
            report = AgentHealth(
                agent=agent, instance="busy", at=self.now + timedelta(days=365), rate=1e6
            )
            await self.agent_health.publish(report)

    async def tell(self, agent, instance="1", **how):
        """Let an instance of the agent publish how it is doing."""
        report = AgentHealth(agent=agent, instance=instance, at=self.now, **how)
        await self.agent_health.publish(report, self.reported.get((agent, instance)))
        self.reported[agent, instance] = report


@dataclass
class Working:
    """An agent, and the service behind it: so many calls at a time, each of which takes so long."""

    name: str
    in_flight: int
    takes: timedelta
    queue: deque = field(default_factory=deque)
    calls: list = field(default_factory=list)
    expired: int = 0
    rate: Rate = field(default_factory=Rate)
    has_news: bool = False
    reported_at: datetime | None = None
    requested_at: dict = field(default_factory=dict)
    """When each order's first request was sent."""

    async def go_on(self, world):
        """Begin and end calls up to now; return the requests that are answered."""
        for request in world.requests(self.name):
            self.queue.append(request)
            self.requested_at.setdefault(request.order_id, world.now)
        done = [request for until, request in self.calls if until <= world.now]
        self.calls = [(until, request) for until, request in self.calls if until > world.now]
        while self.queue and len(self.calls) < self.in_flight:
            request = self.queue.popleft()
            if request.complete_by <= world.now + self.takes:
                self.expired += 1
                continue
            self.rate.count()
            self.has_news = True
            self.calls.append((world.now + self.takes, request))
        await self._tell(world)
        return done

    async def _tell(self, world):
        """Publish, as an agent does, once a second while requests begin."""
        if not self.has_news or (self.reported_at and world.now - self.reported_at < seconds(1)):
            return
        under_way = tuple(request.request_id for _, request in self.calls[:MOST_BEGUN])
        await world.tell(
            self.name, rate=self.rate.until(world.now), begun=under_way, running=len(self.calls)
        )
        self.has_news, self.reported_at = False, world.now


TICK = seconds(0.25)


LONGEST = seconds(100)


async def work(world, pollers, agents, is_over, receivers):
    """Let the time pass until it is over: agents work, replies reach one receiver after the other."""
    reached = 0
    for number in range(round(LONGEST / TICK)):
        world.now += TICK
        for agent in agents:
            for request in await agent.go_on(world):
                reached += 1
                await receivers[reached % len(receivers)].receive(
                    answer_to(request, result={}), agent.name
                )
        if number % round(seconds(1) / TICK) == 0:
            for instance in pollers:
                await instance.poll()
        if await is_over():
            return
