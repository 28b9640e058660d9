"""The scheduler's window: it keeps no more orders open than the agents finish in time (WRK-2)."""

import asyncio

import pytest
from builders import NOW, ORDER_ID, seconds

from adapters.memory import MemoryAgentMeasures
from agents.gauge import INTERVAL, Gauge
from core.errors import UnavailableError
from core.measures import longest_wait
from core.messages import AgentRequest
from scheduler.window import FIRST, LEAST, LONG_WAIT, LOOK_INTERVAL, Window


class Clock:
    """Stands still unless moved."""

    def __init__(self):
        self.now = NOW

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def window(clock):
    return Window(clock=clock, most=200)


async def fill(window, prefix="o"):
    """Open orders until there is no room; return them."""
    orders = []
    while await window.enter(f"{prefix}{len(orders)}"):
        orders.append(f"{prefix}{len(orders)}")
    return orders


async def test_a_full_window_lets_nobody_in(window):
    """There is room for as many as its size, and for one more once one has left."""
    orders = await fill(window)
    assert len(orders) == window.size == FIRST
    assert window.room == 0
    window.leave(orders[0])
    assert window.room == 1


async def test_who_waits_is_let_in_by_turns(window):
    """The first in line gets the first place; whoever does not wait gets none before them."""
    orders = await fill(window)
    first, second = (asyncio.create_task(window.enter(name, seconds(5))) for name in ("first", "second"))
    await asyncio.sleep(0)
    window.leave(orders[0])
    assert await first
    assert not second.done()
    window.leave(orders[1])
    assert not await window.enter("third")
    assert await second


async def test_who_gives_up_loses_the_turn(window):
    """A place that comes free later goes to the next in line."""
    orders = await fill(window)
    assert not await window.enter("hasty", seconds(0.01))
    waiting = asyncio.create_task(window.enter("patient", seconds(5)))
    await asyncio.sleep(0)
    window.leave(orders[0])
    assert await waiting
    assert window.room == 0


async def test_the_window_grows_while_it_is_full_and_requests_do_not_wait(window):
    """Fast, up to the most that is allowed; without load it goes back to the beginning."""
    sizes = []
    for prefix in "abc":
        await fill(window, prefix)
        window.adapt(0.1)
        sizes.append(window.size)
    assert sizes == [2 * FIRST, 4 * FIRST, 200]
    for _ in range(4):
        window.adapt(0.1)
    assert window.size == FIRST


async def test_the_window_shrinks_while_requests_wait(window):
    """Down to a few: without those nobody would notice that the agents have room again."""
    for _ in range(3):
        before = window.size
        window.adapt(LONG_WAIT + 0.01)
        assert LEAST <= window.size < before
    for _ in range(10):
        window.adapt(1.0)
    assert window.size == LEAST


async def test_the_window_stays_as_it_is_while_nobody_knows(window):
    """Without a word from any agent it does not grow, however full it is."""
    await fill(window)
    window.adapt(None)
    assert window.size == FIRST


async def test_a_larger_window_lets_in_who_waits(window):
    """Growing makes room at once."""
    await fill(window)
    waiting = asyncio.create_task(window.enter("patient", seconds(5)))
    await asyncio.sleep(0)
    window.adapt(0.0)
    assert await waiting


async def test_orders_that_ended_elsewhere_give_up_their_places(window, clock):
    """Those that no longer run leave; one that came in after the question was asked stays."""
    orders = await fill(window)
    clock.now += seconds(0.1)
    asked_at = clock.now
    window.leave(orders[0])
    assert await window.enter("late")
    window.keep_only({orders[1]}, asked_at)
    assert window.room == window.size - 2


async def test_agents_and_orders_are_looked_at_once_in_a_while(window, clock):
    """Not at all without an open order, and then at most once in the interval."""
    assert not window.look_is_due()
    await window.enter("o")
    assert window.look_is_due()
    assert not window.look_is_due()
    clock.now += LOOK_INTERVAL
    assert window.look_is_due()


def request(issued_at=NOW, allowance=10):
    return AgentRequest(
        order_id=ORDER_ID,
        step="payment",
        attempt=1,
        idempotency_key="k",
        issued_at=issued_at,
        complete_by=NOW + seconds(allowance),
        order={},
    )


@pytest.mark.parametrize(("after", "share"), [(-1, 0.0), (0, 0.0), (5, 0.5), (10, 1.0), (60, 1.0)], ids=str)
def test_what_a_request_has_waited_is_a_share_of_its_time(after, share):
    """From when it was issued to its complete-by time; clocks that differ make no nonsense."""
    assert request().waited(NOW + seconds(after)) == share
    assert request(issued_at=None).waited(NOW + seconds(after)) == 0.0


@pytest.mark.proves("AGT-10")
async def test_an_agent_publishes_its_longest_wait_once_a_second(clock):
    """What it published lately is what schedulers go by; the wait of a while ago is forgotten."""
    measures = MemoryAgentMeasures()
    gauge = Gauge(agent="payment", instance="a1", measures=measures, clock=clock)
    await gauge.arrived(request())
    clock.now += INTERVAL / 2
    with gauge.at_work():
        await gauge.arrived(request(issued_at=NOW - seconds(10)))
        assert longest_wait(await measures.since(NOW)) == 0.0
        clock.now += INTERVAL / 2
        await gauge.arrived(request(issued_at=clock.now))
    (published,) = await measures.since(clock.now)
    assert published.waited > 0.5
    assert published.running == 1
    clock.now += INTERVAL
    await gauge.arrived(request(issued_at=clock.now))
    assert longest_wait(await measures.since(clock.now)) == 0.0


async def test_a_measure_that_cannot_be_published_stops_no_request(clock):
    """The store is away: the agent goes on."""

    class Away:
        async def publish(self, measure):
            raise UnavailableError

    await Gauge(agent="payment", instance="a1", measures=Away(), clock=clock).arrived(request())
