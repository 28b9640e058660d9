"""The time that a function may take: when it is up, the function fails, but never amid a write."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import Context, ContextVar, copy_context

from engine.domain.errors import OutOfTimeError

LONGEST_WRITE_SECONDS = 15.0
"""How much longer a function may take, for a write that is under way."""


class _Limit:
    def __init__(self) -> None:
        self.scope = asyncio.timeout(None)
        self.is_over = False
        self.can_cut = True
        self._writes = 0

    def end(self) -> None:
        """Let nothing more begin to write; cancel what runs, as soon as nothing writes."""
        self.is_over = True
        if not self._writes:
            self.cut()

    def cut(self) -> None:
        """Cancel what runs, once."""
        if self.can_cut:
            self.scope.reschedule(asyncio.get_running_loop().time())
        self.can_cut = False

    @contextmanager
    def writing(self) -> Iterator[None]:
        if self.is_over:
            raise OutOfTimeError
        self._writes += 1
        try:
            yield
        finally:
            self._writes -= 1
            if self.is_over:
                self.end()


_limit: ContextVar[_Limit | None] = ContextVar("limit", default=None)


@asynccontextmanager
async def time_limit(
    seconds: float, write_seconds: float = LONGEST_WRITE_SECONDS
) -> AsyncIterator[None]:
    """Raise `OutOfTimeError` after so many seconds, here and in the tasks that were begun here.

    A write that is under way has `write_seconds` more to end, and its caller learns how.
    """
    limit = _Limit()
    token = _limit.set(limit)
    loop = asyncio.get_running_loop()
    timers = [
        loop.call_later(seconds, limit.end),
        loop.call_later(seconds + write_seconds, limit.cut),
    ]
    try:
        async with limit.scope:
            yield
    except TimeoutError as error:
        if limit.scope.expired():
            raise OutOfTimeError from error
        raise
    finally:
        limit.can_cut = False
        for timer in timers:
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
