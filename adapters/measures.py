"""What the agents tell of themselves, in table `agents`: one row for each instance, all in one partition."""

from datetime import datetime
from zlib import crc32

from adapters.operations import Put, Table
from adapters.rows import Columns, columns_of, read_each
from core.measures import Measure

PARTITION = "measures"

MOST_INSTANCES = 256
"""Of one agent. Instances that share a number overwrite each other's row, so no row of a dead one stays for ever."""


class TableAgentMeasures:
    """`AgentMeasures` on a table."""

    def __init__(self, table: Table[Columns]) -> None:
        self._table = table

    async def publish(self, measure: Measure) -> None:
        """See `AgentMeasures.publish`."""
        row = f"{measure.agent}|{crc32(measure.instance.encode()) % MOST_INSTANCES:03d}"
        columns = {
            "Agent": measure.agent,
            "Instance": measure.instance,
            "At": measure.at,
            "Waited": measure.waited,
            "Running": measure.running,
            "OpenUntil": measure.open_until,
        }
        await self._table.submit(PARTITION, [Put(row, columns)])

    async def since(self, moment: datetime) -> list[Measure]:
        """See `AgentMeasures.since`."""
        found = read_each(await self._table.rows(PARTITION, "a", "~"), lambda row: _measure(columns_of(row)))
        return [measure for measure in found if measure.counts(moment)]


def _measure(columns: dict[str, object]) -> Measure:
    return Measure(
        agent=str(columns["Agent"]),
        instance=str(columns["Instance"]),
        at=columns["At"],  # type: ignore[arg-type]  # a datetime, as `publish` wrote it
        waited=float(columns["Waited"]),  # type: ignore[arg-type]  # a number, as `publish` wrote it
        running=int(columns["Running"]),  # type: ignore[call-overload]
        open_until=columns.get("OpenUntil"),  # type: ignore[arg-type]
    )
