"""The last sweep, in table `agents`: one row for it, and two rows that time an overdue one."""

from dataclasses import dataclass
from datetime import datetime

from pydantic import AwareDatetime

from engine.storage.tables import Put, RowMapper, Table, columns_of, first, read_rows


@dataclass(frozen=True, kw_only=True, slots=True)
class Sweep:
    """A sweep of a supervisor."""

    at: AwareDatetime
    """The end of the sweep."""
    instance: str
    """The instance that made the sweep. It had the lease."""
    recovered: int
    """The number of orders that the sweep recovered because a step was overdue."""


FORM = RowMapper(Sweep)

PARTITION = "sweeps"
ROW = "last"
AWAITED = "awaited"
MISSED = "missed"


class SweepLog:
    """The last sweep of any supervisor."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def record(self, sweep: Sweep) -> None:
        """Replace the stored sweep. Raises `UnavailableError`."""
        await self._table.submit(PARTITION, [Put(ROW, FORM.columns(sweep))])

    async def last(self) -> Sweep | None:
        """Return the last sweep. None before the first one, and if the row is unreadable.

        Raises `UnavailableError`.
        """
        stored = await self._table.get(PARTITION, ROW)
        found = read_rows([stored] if stored else [], lambda row: FORM.record(columns_of(row)))
        return found[0] if found else None

    async def awaited_since(self, now: datetime) -> datetime:
        """Return the time of the first call by any process. Raises `UnavailableError`."""
        since: datetime = (await first(self._table, PARTITION, {AWAITED: {"Since": now}}))["Since"]
        return since

    async def missed_since(self, last: Sweep, now: datetime) -> datetime:
        """Return the time of the first call by any process after this sweep.

        Raises `UnavailableError`.
        """
        stored = await self._table.get(PARTITION, MISSED)
        known = columns_of(stored) if stored else {}
        if known.get("After") != last.at:
            known = {"After": last.at, "Since": now}
            await self._table.submit(PARTITION, [Put(MISSED, known)])
        since: datetime = known["Since"]
        return since
