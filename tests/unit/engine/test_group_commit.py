"""What is submitted while a flush is under way goes out together with the next one."""

import asyncio

import pytest

from engine.concurrency import GroupCommit
from engine.domain.errors import UnavailableError


class Flushes:
    """Notes what each flush was given, and lets the first one wait."""

    def __init__(self, error=None):
        self.error, self.seen = error, []
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()

    async def flush(self, lane, items):
        self.seen.append(list(items))
        self.begun.set()
        await self.go_on.wait()
        if self.error:
            raise self.error
        return items


async def submitted(flushes, *items):
    """Submit all of these at once; return their tasks, once the first flush is under way."""
    commits = GroupCommit(flushes.flush)
    tasks = [asyncio.create_task(commits.submit("lane", item)) for item in items]
    await flushes.begun.wait()
    return tasks


@pytest.mark.proves("FLT-7")
async def test_all_that_wait_for_a_flush_that_fails_fail_with_it():
    """In an outage each flush takes until it is given up: one for each item would take for ever."""
    flushes = Flushes(UnavailableError("away"))
    tasks = await submitted(flushes, 1, 2, 3)
    flushes.go_on.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert outcomes == [flushes.error] * 3
    assert flushes.seen == [[1, 2, 3]]


@pytest.mark.proves("FLT-6")
async def test_who_waits_no_longer_takes_no_answer_from_the_others():
    """The function of one was cut off."""
    flushes = Flushes()
    first, other = await submitted(flushes, 1, 2)
    first.cancel()
    await asyncio.wait([first])
    flushes.go_on.set()
    assert await other == 2
