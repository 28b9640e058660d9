"""Measures how long requests wait for an agent, and publishes it (AGT-10)."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from core.errors import UnavailableError
from core.measures import Measure
from core.messages import AgentRequest
from core.ports import AgentMeasures, Clock

log = logging.getLogger(__name__)

INTERVAL = timedelta(seconds=1)


@dataclass(kw_only=True)
class Gauge:
    """One agent instance's view of itself, published at most once a second, and only while there is work."""

    agent: str
    instance: str
    measures: AgentMeasures
    clock: Clock
    _running: int = 0
    _longest: float = 0.0
    _published_at: datetime | None = None

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
        now = self.clock()
        self._longest = max(self._longest, request.waited(now))
        if self._published_at and now - self._published_at < INTERVAL:
            return
        measure = Measure(agent=self.agent, instance=self.instance, at=now, waited=self._longest, running=self._running)
        self._published_at, self._longest = now, 0.0
        try:
            await self.measures.publish(measure)
        except UnavailableError as error:  # the next one comes in a second; the request must not suffer
            log.debug("agent.measure_not_published", extra={"agent": self.agent, "why": str(error)})
