"""Records silent agents, so that schedulers send them only a few requests (SUP-10)."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from engine.domain.errors import UnavailableError
from engine.ports import Clock
from engine.storage.agent_health import AgentHealth, AgentHealthLog, unresponsive_since

log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class SilenceRecorder:
    """Records each agent that a sweep finds silent, once.

    The agent's own next report overrules the record.
    """

    agent_health: AgentHealthLog
    instance: str
    clock: Clock
    _settled: set[str] = field(default_factory=set)
    """The agents whose record was written or failed."""
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def record(
        self, agent: str, requested_at: datetime, health: Sequence[AgentHealth]
    ) -> None:
        """Record that the agent has not reported since this request.

        This replaces its former record. `health` has the agents' health reports. If the record
        cannot be written, the next sweep writes it.
        """
        async with self._writing:
            if agent in self._settled:
                return
            self._settled.add(agent)
            now = self.clock()
            since = unresponsive_since(health, agent, now) or requested_at
            record = AgentHealth(
                agent=agent, instance=self.instance, at=now, unresponsive_since=since
            )
            try:
                await self.agent_health.publish(record, _record_in(health, agent))
            except UnavailableError as away:
                log.warning("supervisor.health_not_published", extra={"why": str(away)})


def _record_in(health: Sequence[AgentHealth], agent: str) -> AgentHealth | None:
    return next((row for row in health if row.agent == agent and row.unresponsive_since), None)
