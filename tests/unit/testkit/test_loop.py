"""The event loop of the test kit: its time passes as the test says, and not otherwise."""

import asyncio
import time
from contextlib import contextmanager

import pytest

from testkit.loop import HeldLoop
from tests.support.builders import NOW, seconds

DAY = 86_400


@contextmanager
def held():
    """A loop that begins now."""
    loop = HeldLoop(NOW)
    try:
        yield loop
    finally:
        loop.end()


def test_sleepers_wake_up_in_their_order_at_their_times():
    """Also those who fall asleep meanwhile, and one whose time is the very moment to run until."""
    with held() as loop:
        seen = []

        async def sleeper(name, *pauses):
            for pause in pauses:
                await asyncio.sleep(pause)
                seen.append((name, (loop.now() - NOW).total_seconds()))

        for name, pauses in {"a": (3, 3), "b": (0.1, 0.1), "c": (DAY, 1)}.items():
            loop.create_task(sleeper(name, *pauses))
        loop.run_until(NOW + seconds(DAY))
        assert seen == [("b", 0.1), ("b", 0.2), ("a", 3), ("a", 6), ("c", DAY)]
        assert loop.now() == NOW + seconds(DAY)


def test_years_pass_in_no_time_and_nothing_passes_by_itself():
    """The clock stands where the test has put it."""
    with held() as loop:
        began = time.monotonic()
        sleeping = loop.create_task(asyncio.sleep(400 * DAY))
        loop.run_until(NOW + seconds(399 * DAY))
        assert not sleeping.done()
        loop.run_until(NOW + seconds(400 * DAY))
        assert sleeping.done()
        assert time.monotonic() - began < DAY


def test_a_time_out_goes_by_the_held_clock():
    """What waits for ever is given up after the time that it was given."""
    with held() as loop:

        async def waits():
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(60):
                    await asyncio.Event().wait()
            return loop.now()

        waiting = loop.create_task(waits())
        loop.run_until(NOW + seconds(59))
        assert not waiting.done()
        loop.run_until(NOW + seconds(DAY))
        assert waiting.result() == NOW + seconds(60)


def test_work_that_needs_time_is_refused_where_none_passes():
    """It is told, and cancelled; work that needs none has its result."""
    with held() as loop:

        async def answer():
            await asyncio.sleep(0)
            return 42

        assert loop.run(answer()) == 42
        with pytest.raises(RuntimeError, match="the clock stands still"):
            loop.run(asyncio.sleep(1))
        assert loop.now() == NOW


def test_what_is_under_way_at_the_end_is_cancelled():
    """It may clean up, and nobody hears of it."""
    ended = []

    async def works():
        try:
            await asyncio.sleep(DAY)
        finally:
            ended.append("cleaned up")

    with held() as loop:
        loop.create_task(works())
        loop.run_until(NOW)
    assert (ended, loop.is_closed()) == (["cleaned up"], True)
