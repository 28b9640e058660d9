"""How much a remote service lets us ask of it (AGT-10, WRK-2)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from core.errors import NotTriedError
from core.ports import CallRates, Clock

LATER = timedelta(seconds=1)
"""When a request may come again that found no turn within its time."""


@dataclass(kw_only=True)
class CallLimits:
    """Of one service: calls in flight from this instance, and calls per second from all instances together."""

    agent: str
    in_flight: int
    per_second: float | None
    """None if the service sets no limit."""
    rates: CallRates
    clock: Clock
    sleep: Callable[[float], Awaitable[None]]
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
            await self._wait_for_rate(latest)
            yield
        finally:
            self._slots.release()

    async def _wait_for_rate(self, latest: datetime) -> None:
        if self.per_second is None:
            return
        begins = await self.rates.next_call(self.agent, self.per_second, latest)
        if begins is None:
            raise NotTriedError("the service takes no more calls per second", LATER)
        await self.sleep(max(0.0, (begins - self.clock()).total_seconds()))
