"""The bulkhead of a remote service: a limit of calls in flight (WRK-2)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from engine.domain.attempts import NotAttemptedReason
from engine.domain.errors import NotAttemptedError
from engine.ports import Clock

SOON = timedelta(seconds=1)
"""The pause before a request that found no free slot may come again."""


class Bulkhead:
    """Limits the calls that a process has in flight at a service."""

    def __init__(self, *, in_flight: int, clock: Clock) -> None:
        self.in_flight = in_flight
        self._clock = clock
        self._slots = asyncio.Semaphore(in_flight)

    @asynccontextmanager
    async def turn(self, latest: datetime) -> AsyncIterator[None]:
        """Reserve a slot for a call. Raises `NotAttemptedError` if none is free by `latest`."""
        left = (latest - self._clock()).total_seconds()
        try:
            async with asyncio.timeout(left):
                await self._slots.acquire()
        except TimeoutError:
            why = "too many calls are in flight"
            raise NotAttemptedError(NotAttemptedReason.BUSY, why, SOON) from None
        try:
            yield
        finally:
            self._slots.release()
