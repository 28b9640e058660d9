"""Many things at once: each goes its own way."""

import asyncio

import pytest

from engine.concurrency import run_all
from engine.domain.errors import WorkCancelledError


class Work:
    """Things to do, and which of them were done."""

    def __init__(self):
        self.done = []

    async def fine(self, name):
        await asyncio.sleep(0)
        self.done.append(name)
        return name

    async def fails(self, error):
        raise error


async def test_one_failure_stops_no_other():
    """Everything runs to its end, and then what failed is told."""
    work = Work()
    with pytest.raises(ExceptionGroup, match="1 of 3 failed") as caught:
        await run_all([work.fine(1), work.fails(ValueError("x")), work.fine(2)])
    assert [str(error) for error in caught.value.exceptions] == ["x"]
    assert work.done == [1, 2]


@pytest.mark.proves("FLT-6")
async def test_what_is_cancelled_is_a_failure_of_itself_alone():
    """Were it counted as done, the message that it was to handle would be lost."""
    work, cut_off = Work(), asyncio.CancelledError()
    with pytest.raises(ExceptionGroup, match="2 of 4 failed") as caught:
        await run_all(
            [work.fine(1), work.fails(cut_off), work.fails(ValueError("x")), work.fine(2)],
            at_most=1,
        )
    cancelled, other = caught.value.exceptions
    assert isinstance(cancelled, WorkCancelledError)
    assert cancelled.__cause__ is cut_off
    assert isinstance(other, ValueError)
    assert work.done == [1, 2]


async def test_what_ends_everything_is_no_failure_of_one():
    """Such as the time-out of a test. Were it left out, the results of the others would be mistaken for its own."""

    class EndOfAllError(BaseException):
        pass

    work = Work()
    with pytest.raises(EndOfAllError):
        await run_all([work.fine(1), work.fails(EndOfAllError()), work.fine(2)])
    assert work.done == [1, 2]


@pytest.mark.parametrize(("at_most", "together"), [(1, 1), (3, 3), (20, 10)])
async def test_no_more_is_under_way_at_once_than_is_allowed(at_most, together):
    """And as much as that, until all is done."""
    running, most = 0, 0

    async def works():
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(3):
            await asyncio.sleep(0)
        running -= 1

    await run_all([works() for _ in range(10)], at_most=at_most)
    assert (running, most) == (0, together)


async def test_who_is_cancelled_cancels_all_that_still_runs():
    """Then nothing has failed: somebody wanted it to stop."""
    work, begun = Work(), asyncio.Event()

    async def runs_for_ever():
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(run_all([runs_for_ever(), work.fine(1)]))
    await begun.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert [running for running in asyncio.all_tasks() if "runs_for_ever" in repr(running)] == []
