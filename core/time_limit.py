"""The time that a function may take: when it is up, the function fails, but never amid a write."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import Context, ContextVar, copy_context

from core.errors import OutOfTimeError


class _Limit:
    def __init__(self) -> None:
        self.scope = asyncio.timeout(None)
        self.is_over = False
        self._writes = 0

    def end(self) -> None:
        """Let nothing more begin to write; cancel what runs, as soon as nothing writes."""
        self.is_over = True
        if not self._writes:
            self.scope.reschedule(asyncio.get_running_loop().time())

    @contextmanager
    def writing(self) -> Iterator[None]:
        if self.is_over:
            raise OutOfTimeError
        self._writes += 1
        try:
            yield
        finally:
            self._writes -= 1
            if self.is_over and not self.scope.expired():
                self.end()


_limit: ContextVar[_Limit | None] = ContextVar("limit", default=None)


@asynccontextmanager
async def time_limit(seconds: float) -> AsyncIterator[None]:
    """Raise `OutOfTimeError` after so many seconds, here and in the tasks that were begun here.

    A write that is under way ends first, and its caller learns how.
    """
    limit = _Limit()
    token = _limit.set(limit)
    timer = asyncio.get_running_loop().call_later(seconds, limit.end)
    try:
        async with limit.scope:
            yield
    except TimeoutError as error:
        if limit.scope.expired():
            raise OutOfTimeError from error
        raise
    finally:
        timer.cancel()
        _limit.reset(token)


def unlimited() -> Context:
    """Return the present context for a task that works for others too, and so has no time limit."""
    context = copy_context()
    context.run(_limit.set, None)
    return context


@contextmanager
def writing() -> Iterator[None]:
    """Mark a write; raise `OutOfTimeError` if the time of the function is up."""
    limit = _limit.get()
    if limit is None:
        yield
        return
    with limit.writing():
        yield
