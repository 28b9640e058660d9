"""The limit of operations that the work on alerts takes."""

import asyncio

import pytest

from engine.azure.tables.budget import RateLimiter


class Time:
    """A clock that moves only when somebody sleeps."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now

    async def sleep(self, seconds):
        self.now += seconds


async def turns(budget, time, count):
    """The times of so many turns, one after the other."""
    found = []
    for _ in range(count):
        await budget.turn()
        found.append(time.now)
    return found


@pytest.mark.parametrize(("per_second", "between"), [(10, 0.1), (50, 0.02)])
async def test_turns_keep_their_distance(per_second, between):
    """The first comes at once; after a pause none is saved up."""
    time = Time()
    budget = RateLimiter(per_second, time.monotonic, time.sleep)
    expected = [100 + number * between for number in range(5)]
    assert await turns(budget, time, 5) == pytest.approx(expected)
    time.now += 60
    later = time.now
    assert await turns(budget, time, 3) == pytest.approx([later + n * between for n in range(3)])


async def test_those_who_wait_at_the_same_time_share_the_turns():
    """Each waits for a turn of its own."""
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    budget = RateLimiter(10, lambda: 5.0, sleep)
    await asyncio.gather(*(budget.turn() for _ in range(4)))
    assert waits == pytest.approx([0.1, 0.2, 0.3])
