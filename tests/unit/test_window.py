"""The scheduler's window: it keeps no more orders open than the agents finish in time (WRK-2)."""

import asyncio

import pytest
from builders import ALLOWANCE, NOW, seconds

from scheduler.window import FIRST, LEAST, PERIODS, Window

PERIOD = ALLOWANCE / PERIODS


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
    return Window(clock=clock, allowance=ALLOWANCE, most=200)


async def fill(window, prefix="o"):
    """Open orders until there is no room; return them."""
    orders = []
    while await window.enter(f"{prefix}{len(orders)}"):
        orders.append(f"{prefix}{len(orders)}")
    return orders


async def next_period(window, clock, *, finishing, prefix):
    """Finish some orders of a full window, let a period pass, and look at the window's new size."""
    for order in finishing:
        window.leave(order, finished=True)
    clock.now += PERIOD
    await fill(window, prefix)
    return window.size


async def test_a_full_window_lets_nobody_in(window):
    """There is room for as many as its size, and for one more once one has left."""
    orders = await fill(window)
    assert len(orders) == window.size == FIRST
    assert window.room == 0
    window.leave(orders[0], finished=True)
    assert window.room == 1


async def test_who_waits_is_let_in_by_turns(window):
    """The first in line gets the first place; whoever does not wait gets none before them."""
    orders = await fill(window)
    first, second = (asyncio.create_task(window.enter(name, seconds(5))) for name in ("first", "second"))
    await asyncio.sleep(0)
    window.leave(orders[0], finished=True)
    assert await first
    assert not second.done()
    window.leave(orders[1], finished=True)
    assert not await window.enter("third")
    assert await second


async def test_who_gives_up_loses_the_turn(window):
    """A place that comes free later goes to the next in line."""
    orders = await fill(window)
    assert not await window.enter("hasty", seconds(0.01))
    waiting = asyncio.create_task(window.enter("patient", seconds(5)))
    await asyncio.sleep(0)
    window.leave(orders[0], finished=True)
    assert await waiting
    assert window.room == 0


async def test_the_size_is_twice_what_was_finished_in_a_period(window, clock):
    """It follows the agents, up and down, but never below a few, or above `most`."""
    orders = await fill(window)
    assert await next_period(window, clock, finishing=orders, prefix="a") == 2 * FIRST
    assert await next_period(window, clock, finishing=[f"a{number}" for number in range(10)], prefix="b") == 20
    assert await next_period(window, clock, finishing=[], prefix="c") == LEAST
    many = [f"a{number}" for number in range(10, 2 * FIRST)]
    assert await next_period(window, clock, finishing=many, prefix="d") == 2 * len(many)
    window.most = 50
    assert await next_period(window, clock, finishing=[f"d{number}" for number in range(100)], prefix="e") == 50


async def test_without_load_the_size_goes_back_to_the_beginning(window, clock):
    """What the agents could do a while ago says nothing about now."""
    orders = await fill(window)
    await next_period(window, clock, finishing=orders, prefix="a")
    for number in range(window.size):
        window.leave(f"a{number}", finished=True)
    for _ in range(3):
        clock.now += PERIOD
        assert await window.enter("single")
        window.leave("single", finished=True)
    assert window.size == FIRST


async def test_orders_that_ended_elsewhere_give_up_their_places(window, clock):
    """Those that no longer run leave; one that came in after the question was asked stays."""
    orders = await fill(window)
    clock.now += seconds(0.1)
    asked_at = clock.now
    window.leave(orders[0], finished=True)
    assert await window.enter("late")
    window.keep_only({orders[1]}, asked_at)
    assert window.room == window.size - 2


async def test_orders_whose_time_ran_out_count_for_nothing(window, clock):
    """While nothing is finished the window closes to a few, however many orders expire."""
    await fill(window)
    clock.now += ALLOWANCE
    await fill(window, "a")
    window.keep_only(set(), clock.now)
    clock.now += PERIOD
    await fill(window, "b")
    assert window.size == LEAST


async def test_the_running_orders_are_not_counted_too_often(window, clock):
    """An idle window needs no count; a busy one at most one in the given time."""
    assert not window.should_recount(seconds(0))
    await window.enter("o")
    assert window.should_recount(seconds(0.5))
    assert not window.should_recount(seconds(0.5))
    clock.now += seconds(0.5)
    assert window.should_recount(seconds(0.5))
