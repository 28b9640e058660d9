"""What spares a remote service: a circuit breaker (AGT-8), a bulkhead (WRK-2), and news of its health (AGT-10)."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from core.errors import CircuitOpenError, NotTriedError, RejectedError, TransientError, UnavailableError
from core.ports import Clock
from stores.agent_health import AgentHealth, AgentHealthLog

log = logging.getLogger(__name__)

LATER = timedelta(seconds=1)
"""When a request may come again that found no turn within its time."""


class Bulkhead:
    """How many calls one instance may have in flight at a service."""

    def __init__(self, *, in_flight: int, clock: Clock) -> None:
        self.in_flight = in_flight
        self._clock = clock
        self._slots = asyncio.Semaphore(in_flight)

    @asynccontextmanager
    async def turn(self, latest: datetime) -> AsyncIterator[None]:
        """Wait for the turn of one call; raises `NotTriedError` if it does not come before `latest`."""
        left = (latest - self._clock()).total_seconds()
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


INTERVAL = timedelta(seconds=1)


@dataclass(kw_only=True)
class HealthReporter:
    """One agent instance's view of itself, published at most once a second, and only while there is work."""

    agent: str
    instance: str
    circuit: CircuitBreaker
    agent_health: AgentHealthLog
    clock: Clock
    _running: int = 0
    _longest: float = 0.0
    _published_at: datetime | None = None
    _told_open_until: datetime | None = None

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Count a call for as long as it takes."""
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1

    async def waited(self, share: float) -> None:
        """Take note of the share of its time that a request has waited whose work begins now."""
        now = self.clock()
        self._longest = max(self._longest, share)
        if self._published_at is None or not timedelta() <= now - self._published_at < INTERVAL:
            await self._publish(now)  # also when the clock was put back

    async def turned_away(self) -> None:
        """Take note of a request that was not tried, because the circuit is open or there was no turn for it.

        That the circuit is open is said at once, before the reply: else the request would come straight here again.
        """
        until = self.circuit.open_until
        if until is None:
            await self.waited(1.0)
        elif until != self._told_open_until:
            log.warning("agent.circuit_opened", extra={"agent": self.agent, "until": str(until)})
            await self._publish(self.clock())

    async def _publish(self, now: datetime) -> None:
        health = AgentHealth(
            agent=self.agent,
            instance=self.instance,
            at=now,
            waited=self._longest,
            running=self._running,
            open_until=self.circuit.open_until,
        )
        self._published_at, self._longest, self._told_open_until = now, 0.0, health.open_until
        try:
            await self.agent_health.publish(health)
        except UnavailableError as error:  # the next one comes in a second; the request must not suffer
            log.debug("agent.health_not_published", extra={"agent": self.agent, "why": str(error)})
