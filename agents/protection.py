"""What spares a remote service: a circuit breaker (AGT-8), and a limit of the calls in flight (AGT-10, WRK-2)."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from core.errors import CircuitOpenError, NotTriedError, RejectedError, TransientError
from core.ports import Clock

LATER = timedelta(seconds=1)
"""When a request may come again that found no turn within its time."""


@dataclass(kw_only=True)
class Bulkhead:
    """How many calls one instance may have in flight at a service."""

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


ONE_TRIES = timedelta(seconds=1)
"""How long others wait while one call tries whether the circuit may close."""


class CircuitBreaker:
    """Opens when the service fails for one order after another; one order that fails again and again counts once.

    So a fault of one order stops nobody else, and ends in `Error` by its own count of failures.
    """

    def __init__(self, *, orders: int, open_for: timedelta, clock: Clock) -> None:
        self._orders = orders
        self._open_for = open_for
        self._clock = clock
        self._failed: set[str] = set()
        """Orders for which the service failed since it last worked."""
        self._trying = False
        self.open_until: datetime | None = None
        """Until when no call is made; None while the circuit is closed."""

    @contextmanager
    def guard(self, order_id: str) -> Iterator[None]:
        """Watch one call; raises `CircuitOpenError` instead of letting it begin while the circuit is open.

        When the time is over, one call at a time may try: if it succeeds, the circuit is closed again.
        """
        trial = self.admit()
        self._trying = trial
        try:
            yield
        except TransientError:
            self._fails(order_id, trial=trial)
            raise
        except RejectedError:  # the service works, and says no
            self._works(trial=trial)
            raise
        else:
            self._works(trial=trial)
        finally:
            self._trying = self._trying and not trial

    def admit(self) -> bool:
        """Return whether a call that began now would be the one that tries; raises `CircuitOpenError`."""
        if self.open_until is None:
            return False
        if (left := self.open_until - self._clock()) > timedelta():
            raise CircuitOpenError("the circuit is open: the service fails for one order after another", left)
        if self._trying:
            raise CircuitOpenError("the circuit is open, and one call tries whether the service works again", ONE_TRIES)
        return True

    def _fails(self, order_id: str, *, trial: bool) -> None:
        self._failed.add(order_id)
        if trial or (self.open_until is None and len(self._failed) >= self._orders):
            self.open_until = self._clock() + self._open_for

    def _works(self, *, trial: bool) -> None:
        if trial or self.open_until is None:  # else it was opened while this call was under way, and stays so
            self._failed.clear()
            self.open_until = None
