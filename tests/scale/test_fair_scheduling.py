"""Thousands of orders, several instances, slow or absent agents: who is claimed when."""

import math
import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from engine.domain.keys import buckets
from engine.domain.submitted_order import Priority
from engine.storage.agent_health import PROBE_REQUESTS
from scheduler.admission.admission import REFRESH_INTERVAL
from scheduler.admission.claim_queue import NORMAL_PRIORITY_SHARE
from scheduler.service import WAKE_UP_TIME
from tests.support.builders import seconds
from tests.support.scale import both_sizes
from tests.support.scheduling import NEEDS, TICK, Scheduling, Working, only, work

INSTANCES = 3
BUCKETS = 16
TIMEOUT = seconds(15)
AGES, SPAN = 4, seconds(10)
"""Spans of time in which the orders came in, each at one moment."""

RAMP_UP = 3 * REFRESH_INTERVAL
"""The first look, and two more until the answers to `PROBE_REQUESTS` are seen and as much again may open."""


def a_rate(name, per_second):
    """An agent that works on twenty requests at a time."""
    return Working(name, in_flight=20, takes=seconds(20 / per_second))


async def some_orders(world, count, needs):
    """Orders of all ages, priorities and buckets, unsorted; those nobody can do now came first.

    The older, the fewer, and few are normal: so those that are both have little to wait for.
    """
    chance = random.Random(15)
    orders = {}
    for number in range(count):
        need = needs[number % len(needs)]
        (age,) = [AGES] if need == "shipping" else chance.choices(range(AGES), weights=(8, 4, 2, 1))
        (priority,) = chance.choices(list(Priority), weights=(3, 1))
        since = world.now - age * SPAN
        order_id = await world.record(
            need, chance.choice(buckets(BUCKETS)), since=since, priority=priority
        )
        orders[order_id] = (need, age, priority)
    return orders


def before(order, count):
    """How many orders of its need may be claimed before this one: those that waited as long.

    Urgent ones go first at any age; but now and then each instance has a turn for normal orders.
    """
    need, age, priority = order
    older = sum(count[need, other, priority] for other in range(age, AGES + 1))
    urgent = sum(count[need, other, Priority.HIGH] for other in range(AGES + 1))
    if priority is Priority.HIGH:
        return older + older / (NORMAL_PRIORITY_SHARE - 1) + INSTANCES
    return older + min(urgent, (NORMAL_PRIORITY_SHARE - 1) * (older + INSTANCES))


@pytest.mark.proves("SCH-11", "WRK-2", "WRK-3")
@both_sizes(most_orders=(600, 2000))
async def test_no_order_waits_longer_than_for_those_before_it(most_orders):
    """With one agent away, three needs, two priorities, sixteen buckets, three instances.

    An agent for which orders wait is given enough for a second, once a second, as soon as the limit
    has grown. So an order is claimed once its agent has done those before it, at its rate, and a
    second later at most.
    """
    world = Scheduling(*(only(need, TIMEOUT) for need in NEEDS), buckets=BUCKETS, most=500)
    orders = await some_orders(
        world, most_orders, ("payment", "payment", "payment", "inventory", "shipping")
    )
    await world.tell("shipping", open_until=world.now + timedelta(hours=1))
    world.now += WAKE_UP_TIME
    began, rates = world.now, {"payment": 40, "inventory": 20}
    agents = [a_rate(name, rate) for name, rate in rates.items()]
    expected = {order_id for order_id, (need, _, _) in orders.items() if need in rates}

    async def all_are_claimed():
        return sum(len(agent.requested_at) for agent in agents) == len(expected)

    instances = [world.instance(f"i{number}") for number in range(INSTANCES)]
    await work(world, instances, agents, all_are_claimed, instances)
    waited = {
        order_id: at - began for agent in agents for order_id, at in agent.requested_at.items()
    }
    count = Counter(orders.values())

    def bound(order):
        return RAMP_UP + seconds(before(order, count) / rates[order[0]]) + REFRESH_INTERVAL

    late = [
        (orders[priority], waited[priority], bound(orders[priority]))
        for priority in waited
        if waited[priority] > bound(orders[priority])
    ]
    assert late == []
    assert waited.keys() == expected
    assert [agent.expired for agent in agents] == [0, 0]
    away = {order_id for order_id, (need, _, _) in orders.items() if need == "shipping"}
    assert set(await world.pending(away)) == away


@pytest.mark.proves("WRK-2")
@pytest.mark.parametrize(
    ("count", "in_flight", "takes", "apart"),
    [
        pytest.param(1000, 20, 0.25, False, id="a thousand", marks=pytest.mark.soak),
        pytest.param(400, 100, 5, False, id="long calls", marks=pytest.mark.soak),
        pytest.param(100, 1, 0.25, False, id="one by one"),
        pytest.param(200, 10, 1, True, id="replies elsewhere"),
    ],
)
async def test_a_backlog_at_a_slow_agent_burns_no_attempt(count, in_flight, takes, apart):
    """However many wait, no request expires, and no failure is counted."""
    world = Scheduling(only("payment", TIMEOUT), most=2000)
    ids = [await world.record(bucket=f"b{number % 8:02d}") for number in range(count)]
    agent = Working("payment", in_flight, seconds(takes))

    async def all_are_done():
        return len(agent.requested_at) == count and not (agent.queue or agent.calls)

    pollers = [world.instance(f"i{number}") for number in range(INSTANCES)]
    await work(
        world, pollers, [agent], all_are_done, [world.instance("hears")] if apart else pollers
    )
    assert agent.expired == 0
    assert agent.requested_at.keys() == set(ids)


@dataclass
class Shared(Working):
    """An agent on a slow machine: every call begins at once, and all share what the machine can do."""

    per_second: float = 3.0
    left: list = field(default_factory=list)
    """Each request, and how much of its work is left, in calls."""

    async def go_on(self, world):
        for request in world.requests(self.name):
            self.requested_at.setdefault(request.order_id, world.now)
            self.left.append((request, 1.0))
            self.rate.count()
            self.has_news = True
        share = self.per_second * TICK.total_seconds() / max(1, len(self.left))
        less = [(request, work - share) for request, work in self.left]
        self.left = [(request, work) for request, work in less if work > 0]
        self.calls = [(world.now, request) for request, _ in self.left]
        await self._tell(world)
        ended = [request for request, work in less if work <= 0]
        in_time = [request for request in ended if request.complete_by > world.now]
        self.expired += len(ended) - len(in_time)
        return in_time


@pytest.mark.proves("WRK-2")
async def test_a_backlog_on_a_slow_machine_burns_no_attempt():
    """More open calls make each of them slower there, and its report says only how many begin."""
    world = Scheduling(only("payment", seconds(5)), most=40)
    for number in range(100):
        await world.record(bucket=f"b{number % 8:02d}")
    agent, poller = Shared("payment", 100, seconds(0)), world.instance()

    async def all_are_done():
        return len(agent.requested_at) == 100 and not agent.left

    await work(world, [poller], [agent], all_are_done, [poller])
    assert (agent.expired, len(agent.left)) == (0, 0)


@pytest.mark.proves("WRK-2", "WRK-3")
async def test_who_hears_of_no_reply_finds_out_too_how_much_may_be_open():
    """Each function has a process: all that was claimed is answered when the poll looks again."""
    world = Scheduling(most=500)
    for number in range(500):
        await world.record(bucket=f"b{number % 8:02d}")
    agent, began = Working("payment", in_flight=500, takes=seconds(0.25)), world.now

    async def all_are_requested():
        return len(agent.requested_at) == 500

    await work(
        world, [world.instance("polls")], [agent], all_are_requested, [world.instance("hears")]
    )
    doublings = math.ceil(math.log2(500 / PROBE_REQUESTS))
    assert max(agent.requested_at.values()) - began <= (doublings + 2) * REFRESH_INTERVAL
