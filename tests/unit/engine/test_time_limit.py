"""A function that takes too long fails by itself, and never amid a write."""

import asyncio

import pytest

from engine.concurrency import GroupCommit, run_all
from engine.domain.errors import OutOfTimeError
from engine.runtime.functions import answering, limited
from engine.time_limit import time_limit, writing

SHORT = 0.05


class Store:
    """Writes once it may go on."""

    def __init__(self):
        self.begun, self.goes_on, self.written = asyncio.Event(), asyncio.Event(), []
        self.commits = GroupCommit(self.flush)

    async def flush(self, lane, items):
        self.begun.set()
        await self.goes_on.wait()
        self.written += items
        return [f"wrote {item}" for item in items]

    async def write(self, item):
        return await self.commits.submit("lane", item)


async def test_what_takes_too_long_fails_as_any_other_failure():
    """The worker gets an answer: not a cancellation, for which Azure's sends none (load.md 3)."""
    with pytest.raises(OutOfTimeError):
        await answering(limited(asyncio.Event().wait, SHORT))()


async def test_all_that_it_runs_at_the_same_time_ends_with_it():
    """Such as the messages of a batch."""
    ended = []

    async def one(number):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(number)

    with pytest.raises(OutOfTimeError):
        async with time_limit(SHORT):
            await run_all(one(number) for number in range(3))
    assert sorted(ended) == [0, 1, 2]


async def test_a_write_ends_and_its_caller_learns_how():
    """Whatever comes after it is cancelled."""
    store, learned = Store(), []

    async def function():
        learned.append(await store.write("a"))
        await asyncio.Event().wait()

    running = asyncio.create_task(limited(function, SHORT)())
    await store.begun.wait()
    await asyncio.sleep(2 * SHORT)  # the time passes
    assert not running.done()
    store.goes_on.set()
    with pytest.raises(OutOfTimeError):
        await running
    assert (learned, store.written) == (["wrote a"], ["a"])


async def test_no_write_begins_once_the_time_is_up():
    """Neither of the function nor of what it runs beside a write."""
    store = Store()

    async def function():
        await store.write("a")
        await store.write("b")

    running = asyncio.create_task(limited(function, SHORT)())
    await store.begun.wait()
    await asyncio.sleep(2 * SHORT)  # the time passes
    store.goes_on.set()
    with pytest.raises(OutOfTimeError):
        await running
    assert store.written == ["a"]


async def test_a_write_for_others_does_not_end_with_the_time_of_who_began_it():
    """Nor does what a write needs, such as a token, which others wait for too."""
    tokens, store = Store(), Store()

    async def flush(lane, items):
        store.begun.set()
        await store.goes_on.wait()
        return [f"{item} with {await tokens.write('a token')}" for item in items]

    tokens.goes_on.set()
    commits = GroupCommit(flush)

    async def write(item):
        return await commits.submit("lane", item)

    first = asyncio.create_task(limited(lambda: write("a"), SHORT)())
    await store.begun.wait()
    other = asyncio.create_task(limited(lambda: write("b"), 60)())
    await asyncio.sleep(2 * SHORT)  # the time of the first is up
    store.goes_on.set()
    assert await other == "b with wrote a token"
    assert await first == "a with wrote a token"


async def test_what_is_in_time_is_not_touched():
    """Nor is it later: the limit ends with the function."""
    async with time_limit(SHORT):
        with writing():
            pass
    await asyncio.sleep(2 * SHORT)  # its time passes
    with writing():
        pass


async def test_a_time_out_of_its_own_stays_what_it_is():
    """It is not that of the function."""
    with pytest.raises(TimeoutError):
        async with time_limit(60):
            raise TimeoutError


async def test_a_write_that_does_not_end_is_not_waited_for_without_a_limit():
    """Else Azure would end the process all the same; so with many writes that wait for each other."""
    store = Store()
    with pytest.raises(OutOfTimeError):
        async with time_limit(SHORT, write_seconds=SHORT):
            await run_all(store.write(number) for number in range(3))
    store.goes_on.set()


async def writes_directly(store):
    """A function that writes without a task of its own, for ever."""
    async with time_limit(SHORT, write_seconds=SHORT):
        with writing():
            await store.goes_on.wait()


async def test_a_write_of_the_function_itself_is_cut_once():
    """A second cut would be an error of its own, in place of the one that says why."""
    store = Store()
    with pytest.raises(OutOfTimeError):
        await writes_directly(store)


async def test_a_write_that_outlives_its_function_ends_as_it_does():
    """A task that the function has left behind gets the result, and not an error of the limit."""
    store = Store()
    async with time_limit(SHORT):
        left_behind = asyncio.create_task(store.write("a"))
        await store.begun.wait()
        await asyncio.sleep(0)  # it ends in time
    await asyncio.sleep(2 * SHORT)  # the time passes
    store.goes_on.set()
    assert await left_behind == "wrote a"


async def test_a_write_that_ends_after_the_function_and_its_time_does_so_too():
    """The time was up while it wrote, and the function returned."""
    store = Store()
    async with time_limit(SHORT, write_seconds=60):
        left_behind = asyncio.create_task(store.write("a"))
        await asyncio.sleep(2 * SHORT)  # the time passes
    store.goes_on.set()
    assert await left_behind == "wrote a"
