"""What a trigger does while the store or the bus is away: it waits, and says so once.

Were the message given back at once, it would come back at once, and a short outage would wear out its deliveries and
end it as poison. So a handler tries again by itself, with back-off, for longer than a restart of a dependency takes.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from tenacity import AsyncRetrying, retry_if_exception, stop_after_delay, wait_exponential_jitter

from core.errors import UnavailableError

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 45.0
"""Less than the lock of a message lasts, so that it is given back before somebody else gets it."""

T = TypeVar("T")


_away: set[str] = set()
"""The functions that met an outage which lasts. Each has its own: what one needs may be away while another goes on."""


def _seen(function: str, error: BaseException | None) -> None:
    """Note a failure, in the log only if it is the first."""
    if function not in _away:
        _away.add(function)
        log.warning("outage.began", extra={"function": function, "why": str(error)})


def _over(function: str) -> None:
    """Note that the function worked."""
    if function in _away:
        _away.discard(function)
        log.warning("outage.ended", extra={"function": function})


async def through_outages(function: str, work: Callable[[], Awaitable[T]]) -> T:
    """Do the work of a function, again if something that it needs is away.

    Raises `UnavailableError` when that takes too long.
    """
    retrying = AsyncRetrying(
        retry=retry_if_exception(_is_outage),
        wait=wait_exponential_jitter(multiplier=0.2, max=3, jitter=0.5),
        stop=stop_after_delay(PATIENCE_SECONDS),
        before_sleep=lambda state: _seen(function, state.outcome.exception() if state.outcome else None),
        reraise=True,
    )
    async for attempt in retrying:
        with attempt:
            result = await work()
    _over(function)
    return result


@asynccontextmanager
async def next_time(function: str) -> AsyncIterator[None]:
    """Let a periodic run of a function end early when something is away: the timer comes again."""
    try:
        yield
    except* UnavailableError as outage:
        _seen(function, outage.exceptions[0])
    else:
        _over(function)


def _is_outage(error: BaseException) -> bool:
    """Whether something was away, and nothing else is wrong."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(UnavailableError)[1] is None
    return isinstance(error, UnavailableError)
