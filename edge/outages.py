"""What a trigger does while the store or the bus is away: it waits, and says so once.

Were the message given back at once, it would come back at once, and a short outage would wear out its deliveries and
end it as poison. So a handler tries again by itself, with back-off, for longer than a restart of a dependency takes.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_delay, wait_exponential_jitter

from core.errors import UnavailableError

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 45.0
"""Less than the lock of a message lasts, so that it is given back before somebody else gets it."""

T = TypeVar("T")


class _Outage:
    """Whether something is away, so that the log has one line when that begins and one when it ends."""

    def __init__(self) -> None:
        self._lasting = False

    def seen(self, error: BaseException | None) -> None:
        """Note a failure."""
        if not self._lasting:
            self._lasting = True
            log.warning("outage.began", extra={"why": str(error)})

    def over(self) -> None:
        """Note that something worked."""
        if self._lasting:
            self._lasting = False
            log.warning("outage.ended")


_outage = _Outage()


async def through_outages(work: Callable[[], Awaitable[T]]) -> T:
    """Do the work, again if something that it needs is away; raises `UnavailableError` when that takes too long."""
    retrying = AsyncRetrying(
        retry=retry_if_exception(_is_outage),
        wait=wait_exponential_jitter(multiplier=0.2, max=3, jitter=0.5),
        stop=stop_after_delay(PATIENCE_SECONDS),
        before_sleep=_note,
        reraise=True,
    )
    async for attempt in retrying:
        with attempt:
            result = await work()
    _outage.over()
    return result


@asynccontextmanager
async def next_time() -> AsyncIterator[None]:
    """Let a periodic run end early when something is away: the timer comes again."""
    try:
        yield
    except* UnavailableError as outage:
        _outage.seen(outage.exceptions[0])
    else:
        _outage.over()


def _is_outage(error: BaseException) -> bool:
    """Whether something was away, and nothing else is wrong."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(UnavailableError)[1] is None
    return isinstance(error, UnavailableError)


def _note(state: RetryCallState) -> None:
    _outage.seen(state.outcome.exception() if state.outcome else None)
