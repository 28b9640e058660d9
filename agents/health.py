"""Measures how long requests wait for an agent, and publishes it (AGT-10)."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from agents.protection import CircuitBreaker
from core.agent_health import AgentHealth
from core.errors import UnavailableError
from core.messages import AgentRequest
from core.ports import AgentHealthLog, Clock

log = logging.getLogger(__name__)

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

    async def arrived(self, request: AgentRequest) -> None:
        """Take note of a request whose work begins now."""
        await self._waited(request.waited(self.clock()))

    async def _waited(self, share: float) -> None:
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
            await self._waited(1.0)
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
            log.debug("agent.measure_not_published", extra={"agent": self.agent, "why": str(error)})
