"""What the agents tell of themselves, in table `agents`: one row for each instance, all in one partition."""

from datetime import datetime
from zlib import crc32

from adapters.tables.operations import Put, Table
from adapters.tables.rows import Columns, columns_of, read_each
from core.agent_health import AgentHealth

PARTITION = "measures"

MAX_INSTANCES = 256
"""Of one agent. Instances that share a number overwrite each other's row, so no row of a dead one stays for ever."""


class TableAgentHealthLog:
    """`AgentMeasures` on a table."""

    def __init__(self, table: Table[Columns]) -> None:
        self._table = table

    async def publish(self, health: AgentHealth) -> None:
        """See `AgentMeasures.publish`."""
        row = f"{health.agent}|{crc32(health.instance.encode()) % MAX_INSTANCES:03d}"
        columns = {
            "Agent": health.agent,
            "Instance": health.instance,
            "At": health.at,
            "Waited": health.waited,
            "Running": health.running,
            "OpenUntil": health.open_until,
        }
        await self._table.submit(PARTITION, [Put(row, columns)])

    async def since(self, moment: datetime) -> list[AgentHealth]:
        """See `AgentMeasures.since`."""
        found = read_each(await self._table.rows(PARTITION, "a", "~"), lambda row: _measure(columns_of(row)))
        return [health for health in found if health.counts(moment)]


def _measure(columns: dict[str, object]) -> AgentHealth:
    return AgentHealth(
        agent=str(columns["Agent"]),
        instance=str(columns["Instance"]),
        at=columns["At"],  # type: ignore[arg-type]  # a datetime, as `publish` wrote it
        waited=float(columns["Waited"]),  # type: ignore[arg-type]  # a number, as `publish` wrote it
        running=int(columns["Running"]),  # type: ignore[call-overload]
        open_until=columns.get("OpenUntil"),  # type: ignore[arg-type]
    )
