"""What the agents tell of themselves, in table `agents`: one row for each instance, all in one partition."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from zlib import crc32

from pydantic import AwareDatetime, FiniteFloat

from stores.tables import Form, Put, Table, columns_of, read_each


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentHealth:
    """How one instance of an agent is doing."""

    agent: str
    instance: str
    at: AwareDatetime
    waited: FiniteFloat
    """The longest that a request waited lately before its work began, as a share of the time that it had (0 to 1)."""
    running: int
    """Calls in progress."""
    open_until: AwareDatetime | None = None
    """While the instance's circuit is open: until when it makes no call."""

    def counts(self, since: datetime) -> bool:
        """Whether it says something of the time since then; that a circuit is open, it says until that is over."""
        return self.at >= since or self.is_open(since)

    def is_open(self, now: datetime) -> bool:
        """Whether the instance makes no calls now."""
        return self.open_until is not None and self.open_until > now


def longest_wait(agent_health: Iterable[AgentHealth]) -> float | None:
    """Return the largest of the waits; None if nobody said anything."""
    return max((health.waited for health in agent_health), default=None)


def open_until(agent_health: Iterable[AgentHealth], now: datetime) -> datetime | None:
    """Return when the first instance of an agent makes calls again, if now none does; None if any may."""
    known = list(agent_health)
    if not all(health.is_open(now) for health in known):
        return None
    return min((health.open_until for health in known if health.open_until), default=None)


PARTITION = "health"

FORM = Form(AgentHealth)

MAX_INSTANCES = 256
"""Of one agent. Instances that share a number overwrite each other's row, so no row of a dead one stays for ever."""


class AgentHealthLog:
    """What the agents tell of themselves (AGT-10)."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def publish(self, health: AgentHealth) -> None:
        """Replace what this agent instance said before; raises `UnavailableError`."""
        row = f"{health.agent}|{crc32(health.instance.encode()) % MAX_INSTANCES:03d}"
        await self._table.submit(PARTITION, [Put(row, FORM.columns(health))])

    async def since(self, moment: datetime) -> list[AgentHealth]:
        """Return what says something of the time since then (`AgentHealth.counts`); raises `UnavailableError`."""
        found = read_each(await self._table.rows(PARTITION, "a", "~"), lambda row: FORM.record(columns_of(row)))
        return [health for health in found if health.counts(moment)]
