"""Each function has a process, as on Azure: one polls, others take wake-ups or replies (WRK-3)."""

import asyncio
from collections import Counter

import pytest

from engine.concurrency import run_all
from engine.declarations.workflow import WorkflowDefinition
from engine.domain.messages import OrderReady, decode
from engine.domain.submitted_order import Priority
from tests.support.builders import answer_to, seconds
from tests.support.builders import order_ready as wake_up_of
from tests.support.scale import both_sizes, in_soak
from tests.support.scheduling import FIRST, Scheduling, Working, only, step

STEP = seconds(60)


async def announced(world, **what):
    """Record an order; return what announces it."""
    order = await world.load(await world.record(**what))
    return decode(OrderReady, wake_up_of(order).body)


@pytest.mark.proves("WRK-2", "WRK-3", "SCH-11")
@pytest.mark.parametrize(
    ("processes", "rate"),
    [(3, 10), (16, 10), *(pytest.param(40, rate, marks=pytest.mark.soak) for rate in (10, 20))],
)
async def test_processes_that_look_at_the_same_moment_open_no_more_than_the_limit(processes, rate):
    """Each hears of as many orders as may be open: together they open those, and one more each."""
    world = Scheduling(only("payment", STEP), most=1000)
    orders_ready = [
        await announced(world, bucket=f"b{number % 8:02d}") for number in range(processes * 32)
    ]
    instances = [world.instance(f"wake-{number}") for number in range(processes)]
    for instance in instances:
        await instance._refresh()
    for number, order_ready in enumerate(orders_ready):
        await instances[number % processes].on_order_ready(order_ready)
    opened = len(world.requests())
    assert FIRST <= opened <= FIRST + processes
    assert opened <= rate * STEP.total_seconds()  # so none expires before it is begun


class Flex:
    """Eight processes take wake-ups, one replies, one polls; new orders come all the time."""

    def __init__(self, rate, per_second, **more):
        self.world = Scheduling(only("payment", STEP), most=rate)
        self.agent = Working("payment", in_flight=rate, takes=seconds(1))
        self.poller, self.replies = self.world.instance("poll"), self.world.instance("reply")
        self.wakers = [self.world.instance(f"wake-{number}") for number in range(8)]
        self.per_second, self.more, self.came, self.began = per_second, more, {}, self.world.now

    async def wait(self, count, **what):
        """Let so many orders wait since a minute; return their ids."""
        since = self.world.now - seconds(60)
        return [
            await self.world.record(bucket=f"b{n % 8:02d}", since=since, **what)
            for n in range(count)
        ]

    async def run(self, duration, *, polls=True):
        """Let the time pass."""
        for tick in range(round(duration * 2)):
            self.world.now += seconds(0.5)
            for _ in range(self.per_second // 2):
                number = len(self.came)
                order_ready = await announced(self.world, bucket=f"b{number % 8:02d}")
                self.came[order_ready.order_id] = self.world.now
                await self.wakers[number % 8].on_order_ready(order_ready)
            for request in await self.agent.go_on(self.world):
                await self.replies.receive(answer_to(request, result={}), "payment")
            if polls and tick % 2 == 0:
                await self.poller.poll()

    def order_of_claims(self):
        return list(self.agent.requested_at)


@pytest.mark.proves("SCH-11", "WRK-3")
@pytest.mark.parametrize("per_second", [*in_soak(8), 16])
@both_sizes(waiting=(60, 200))
async def test_orders_that_wait_are_claimed_before_any_that_came_later(per_second, waiting):
    """As many come as the agent can do, or twice as many, and each process hears of its own."""
    flex = Flex(rate=8, per_second=per_second)
    old = set(await flex.wait(waiting))
    await flex.run(waiting / 8 + 5)
    claimed = flex.order_of_claims()
    assert old <= set(claimed)
    last = max(claimed.index(order_id) for order_id in old)
    before = [order_id for order_id in claimed[:last] if order_id not in old]
    assert [
        order_id for order_id in before if flex.came[order_id] - flex.began >= seconds(10)
    ] == []
    assert last < len(old) + 8


@pytest.mark.proves("SCH-11")
@both_sizes(waiting=(60, 200))
async def test_urgent_orders_get_four_of_five_claims_until_all_are_claimed(waiting):
    """And normal ones, which come all the time, go on getting every fifth."""
    flex = Flex(rate=8, per_second=16)
    urgent = set(await flex.wait(waiting, priority=Priority.HIGH))
    await flex.run(waiting / 6 + 5)
    claimed = flex.order_of_claims()
    last = max(claimed.index(order_id) for order_id in urgent)
    counts = Counter(order_id in urgent for order_id in claimed[: last + 1])
    assert 0.15 <= counts[False] / counts.total() <= 0.25


@pytest.mark.proves("SUB-6", "WRK-3")
@both_sizes(lasts=(30, 120))
async def test_without_the_poll_nothing_that_was_announced_waits_longer(lasts):
    """It is a net: a while without it delays no order that somebody heard of."""
    done = []
    for polls in (True, False):
        flex = Flex(rate=8, per_second=8)
        await flex.run(lasts, polls=polls)
        waited = [
            flex.agent.requested_at[order_id] - at
            for order_id, at in flex.came.items()
            if order_id in flex.agent.requested_at
        ]
        done.append((len(waited), max(waited)))
    (with_polls, longest), (without, longest_without) = done
    assert without >= with_polls - 8
    assert longest_without <= longest + seconds(2)


@pytest.mark.proves("AGT-10", "WRK-2")
@both_sizes(orders=(400, 1000))
async def test_an_agent_that_had_nothing_to_do_is_open(orders):
    """Many orders after a rest take what the agent needs, and seconds to find that out."""
    world = Scheduling(only("payment", STEP), most=100)
    agent, instance = Working("payment", in_flight=100, takes=seconds(1)), world.instance("one")
    await instance.poll()
    world.now += seconds(60)
    for number in range(orders):
        await instance.on_order_ready(await announced(world, bucket=f"b{number % 8:02d}"))
    began = world.now
    while len(agent.requested_at) < orders:
        world.now += seconds(0.25)
        for request in await agent.go_on(world):
            await instance.receive(answer_to(request, result={}), "payment")
    assert world.now - began <= seconds(orders / 100 + 3)


@pytest.mark.proves("WRK-3")
async def test_a_reply_leads_to_no_order_that_waits_for_another_agent_at_work():
    """The processes with that agent's replies claim it, and the others do not race for it."""
    world = Scheduling()
    answers, waiting = {}, {}
    for agent in ("payment", "inventory"):
        await world.record(agent)
        await world.instance("poll").poll()
        (request,) = world.requests(agent)
        answers[agent] = answer_to(request, result={})
    for agent in answers:
        waiting[agent] = await world.record(agent)
    replies = world.instance("replies")
    await replies.receive(answers["inventory"], "inventory")
    assert await world.pending(waiting.values()) == [waiting["payment"]]
    await replies.receive(answers["payment"], "payment")
    assert await world.pending(waiting.values()) == []


@pytest.mark.proves("WRK-3", "SCH-15")
async def test_a_reply_leads_to_an_order_of_which_no_other_reply_would_come():
    """Its agent has nothing to do, and no wake-up says that the order's time has come."""
    world = Scheduling()
    await world.record("inventory")
    await world.instance("poll").poll()
    (request,) = world.requests("inventory")
    later = await world.record("payment", not_before=world.now + seconds(1))
    world.now += seconds(2)
    await world.instance("replies").receive(answer_to(request, result={}), "inventory")
    assert await world.pending([later]) == []


@pytest.mark.proves("SCH-9", "WRK-3")
async def test_a_process_that_has_just_begun_lets_its_first_replies_wait_for_its_first_look():
    """Else each order of the batch would be given back, since nothing is known of who has room."""
    world = Scheduling(
        WorkflowDefinition(
            name="two", version=1, steps=(step("payment"), step("inventory", "payment"))
        )
    )
    one, other = world.instance("claims"), world.instance("replies")
    for number in range(32):
        await world.record("two", f"b{number % 8:02d}")
    world.now += seconds(3)
    await world.tell("payment", rate=100.0)
    await one.poll()
    requests, work_items = world.requests(), world.store.work_items

    async def takes_time(*arguments):
        await asyncio.sleep(0.01)
        return await work_items(*arguments)

    world.store.work_items = takes_time
    await world.tell("inventory", rate=100.0)
    await run_all(other.receive(answer_to(request, result={}), "payment") for request in requests)
    assert len(requests) == len(world.requests("inventory")) == 32


@pytest.mark.proves("WRK-3")
async def test_of_a_batch_that_waits_for_the_first_look_one_looks(monkeypatch):
    """However long it takes: else each reply would look again, one after the other."""
    world = Scheduling(only("payment", STEP))
    one, other = world.instance("claims"), world.instance("replies")
    for number in range(8):
        await world.record(bucket=f"b{number:02d}")
    world.now += seconds(3)
    await world.tell("payment", rate=100.0)
    await one.poll()
    looks, look = [], type(other)._see

    async def takes_long(service):
        looks.append(service)
        await asyncio.sleep(0.01)
        world.now += seconds(2)
        await look(service)

    monkeypatch.setattr(type(other), "_see", takes_long)
    requests = world.requests()
    await asyncio.gather(*(other._refresh() for _ in requests))
    assert (len(requests), len(looks)) == (8, 1)
