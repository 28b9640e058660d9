"""What ended in each minute, and how long steps took, in table `agents`: one row for each process and minute.

Figures are for looking at; nothing is decided by them. No order is named.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar

from pydantic import AwareDatetime, ConfigDict, NonNegativeInt, PositiveInt

from core.changes import Change
from core.errors import AppError
from core.happenings import Ended, Processed
from core.keys import sortable
from core.life import StepState
from core.ports import Clock, NewId
from stores.tables import Delete, Form, Put, Table, columns_of, read_each

log = logging.getLogger(__name__)

MINUTE = timedelta(minutes=1)

MAX_REMOVED = 1000
"""At a time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Took:
    """How long a step took from its request to the answer, in milliseconds; only attempts that completed it count."""

    __pydantic_config__: ClassVar = ConfigDict()  # else that of the row's columns holds here too
    count: PositiveInt
    total: NonNegativeInt
    longest: NonNegativeInt

    def plus(self, other: "Took") -> "Took":
        """Return both together."""
        longest = max(self.longest, other.longest)
        return Took(count=self.count + other.count, total=self.total + other.total, longest=longest)


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """What ended in a minute."""

    at: AwareDatetime
    """When the minute began."""
    processed: NonNegativeInt = 0
    failed: NonNegativeInt = 0
    """Orders that ended in `Error`, each time."""
    steps: Mapping[str, Took] = field(default_factory=dict)

    def plus(self, other: "Figures") -> "Figures":
        """Return both together, as of this minute."""
        both = {
            name: self.steps[name].plus(other.steps[name])
            for name in self.steps.keys() & other.steps.keys()
        }
        return Figures(
            at=self.at,
            processed=self.processed + other.processed,
            failed=self.failed + other.failed,
            steps={**self.steps, **other.steps, **both},
        )


def minute_of(time: datetime) -> datetime:
    """Return when the minute began."""
    return time.replace(second=0, microsecond=0)


def figures_of(change: Change, now: datetime) -> Figures:
    """Return what a change adds to the figures of the present minute."""
    took = {
        name: max(0, round(1000 * each))
        for name, each in change.seconds(StepState.COMPLETED).items()
    }
    return Figures(
        at=minute_of(now),
        processed=sum(isinstance(each, Processed) for each in change.entry.happened),
        failed=sum(isinstance(each, Ended) for each in change.entry.happened),
        steps={name: Took(count=1, total=each, longest=each) for name, each in took.items()},
    )


PARTITION = "figures"

FORM = Form(Figures, texts=("steps",))


class FiguresLog:
    """What the processes counted."""

    def __init__(self, table: Table, new_id: NewId) -> None:
        self._table = table
        self._new_id = new_id

    async def add(self, figures: Figures) -> None:
        """Keep what a process counted beside what others did; raises `UnavailableError`."""
        row = f"{sortable(figures.at)}|{self._new_id()}"
        await self._table.submit(PARTITION, [Put(row, FORM.columns(figures))])

    async def between(self, since: datetime, until: datetime) -> list[Figures]:
        """Return what was counted in the minutes that began then, by each process; raises `UnavailableError`."""
        rows = await self._table.rows(PARTITION, sortable(since), sortable(until))
        found = read_each(rows, lambda row: FORM.record(columns_of(row)))
        return [figures for figures in found if since <= figures.at < until]

    async def remove_before(self, time: datetime) -> None:
        """Remove what was counted in minutes that began earlier, the oldest first; raises `UnavailableError`."""
        while old := await self._table.rows(PARTITION, "0", sortable(time), MAX_REMOVED):
            await self._table.submit_each(PARTITION, [Delete(row.key) for row in old])


class Tally:
    """What this process sees in a minute; a task of its own writes it when the minute is over.

    So no order waits for it, whichever functions the process runs: on Azure that which records an agent's replies may
    have no timer. What a process had counted is missing if it ends before, or if the table is away then.
    """

    def __init__(
        self,
        kept: FiguresLog,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._kept = kept
        self._clock = clock
        self._sleep = sleep
        self._minutes: dict[datetime, Figures] = {}
        self._writing: asyncio.Task[None] | None = None

    def count(self, change: Change) -> None:
        """Count a change that was written."""
        found = figures_of(change, self._clock())
        nothing = Figures(at=found.at)
        if found == nothing:
            return
        if found.at not in self._minutes:
            self._writing = asyncio.create_task(self._write(found.at))
        self._minutes[found.at] = self._minutes.get(found.at, nothing).plus(found)

    async def _write(self, minute: datetime) -> None:
        await self._sleep((minute + MINUTE - self._clock()).total_seconds())
        try:
            await self._kept.add(self._minutes.pop(minute))
        except AppError as error:
            log.warning("figures.not_written", extra={"why": str(error)})
