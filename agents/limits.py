"""How many calls one instance may have in flight at a remote service (AGT-10, WRK-2)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from core.errors import NotTriedError
from core.ports import Clock

LATER = timedelta(seconds=1)
"""When a request may come again that found no turn within its time."""


@dataclass(kw_only=True)
class CallLimits:
    """Of one service."""

    in_flight: int
    clock: Clock
    _slots: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.in_flight)

    @asynccontextmanager
    async def turn(self, latest: datetime) -> AsyncIterator[None]:
        """Wait for the turn of one call; raises `NotTriedError` if it does not come before `latest`."""
        left = (latest - self.clock()).total_seconds()
        try:
            async with asyncio.timeout(left):
                await self._slots.acquire()
        except TimeoutError:
            raise NotTriedError("too many calls are in flight", LATER) from None
        try:
            yield
        finally:
            self._slots.release()
