"""A limit of operations per second, for work that must not slow the processing of orders."""

import asyncio
import time
from collections.abc import Awaitable, Callable


class RateLimiter:
    """Grants turns one after another, at a fixed rate in this process.

    Unused turns are not saved.
    """

    def __init__(
        self,
        per_second: float,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._between = 1 / per_second
        self._monotonic, self._sleep = monotonic, sleep
        self._next = 0.0

    async def turn(self) -> None:
        """Wait for the next turn."""
        now = self._monotonic()
        mine = max(now, self._next)
        self._next = mine + self._between
        if mine > now:
            await self._sleep(mine - now)
