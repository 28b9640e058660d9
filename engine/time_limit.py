"""The time limit of a function: when it is up, the function fails, but never during a write."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import Context, ContextVar, copy_context

from engine.domain.errors import OutOfTimeError

LONGEST_WRITE_SECONDS = 15.0
"""The additional seconds that a function gets for a write that is under way."""


class _Limit:
    def __init__(self) -> None:
        self.scope = asyncio.timeout(None)
        self.is_over = False
        self.can_cut = True
        self._writes = 0

    def end(self) -> None:
        """Let no more writes start, and cancel the work as soon as no write is under way."""
        self.is_over = True
        if not self._writes:
            self.cut()

    def cut(self) -> None:
        """Cancel the work, at most once."""
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
    """Raise `OutOfTimeError` after this number of seconds, here and in tasks started here.

    A write that is under way has `write_seconds` more to finish, and its caller learns the outcome.
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
    """Return the present context without its time limit, for a task that also works for others."""
    context = copy_context()
    context.run(_limit.set, None)
    return context


@contextmanager
def writing() -> Iterator[None]:
    """Mark a write.

    Raises `OutOfTimeError` if the time of the function is up.
    """
    limit = _limit.get()
    if limit is None:
        yield
        return
    with limit.writing():
        yield
