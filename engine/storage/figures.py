"""Counts of ended orders and durations of steps, in table `agents`.

There is one row for each process and minute. Figures are only displayed. No decision depends on
them, and they name no order.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar

from pydantic import AwareDatetime, ConfigDict, NonNegativeInt, PositiveInt

from engine.decisions.transitions import Transition
from engine.domain.errors import AppError
from engine.domain.events import OrderEnded, OrderProcessed
from engine.domain.keys import sortable
from engine.domain.orders import InError
from engine.domain.states import Completed
from engine.domain.statuses import Outcome
from engine.ports import Clock, NewId
from engine.storage.tables import Delete, Put, RowMapper, Table, columns_of, read_rows
from engine.time_limit import unlimited

log = logging.getLogger(__name__)

MINUTE = timedelta(minutes=1)

MAX_REMOVED = 1000
"""How many rows are removed in one request."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Durations:
    """The durations of a step's completed attempts, from request to answer, in milliseconds."""

    __pydantic_config__: ClassVar = ConfigDict()  # else that of the row's columns applies
    count: PositiveInt
    total: NonNegativeInt
    longest: NonNegativeInt

    def plus(self, other: "Durations") -> "Durations":
        longest = max(self.longest, other.longest)
        return Durations(
            count=self.count + other.count, total=self.total + other.total, longest=longest
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """The figures of one minute."""

    at: AwareDatetime
    """The beginning of the minute."""
    processed: NonNegativeInt = 0
    """The number of orders that became `Processed`."""
    failed: NonNegativeInt = 0
    """The number of orders that went to `Error` and waited for an operator."""
    undone: NonNegativeInt = 0
    """The number of orders that ended undone."""
    steps: Mapping[str, Durations] = field(default_factory=dict)
    """For each step, as JSON: the number of completed attempts, their total duration and their
    longest duration in milliseconds."""

    def plus(self, other: "Figures") -> "Figures":
        """Return the sum of both, with the time of this one."""
        steps = dict(self.steps)
        for name, durations in other.steps.items():
            steps[name] = steps[name].plus(durations) if name in steps else durations
        return Figures(
            at=self.at,
            processed=self.processed + other.processed,
            failed=self.failed + other.failed,
            undone=self.undone + other.undone,
            steps=steps,
        )


def minute_of(time: datetime) -> datetime:
    return time.replace(second=0, microsecond=0)


def figures_of(transition: Transition, now: datetime) -> Figures:
    """Return the figures that a transition adds to the present minute."""
    steps = {}
    for name, seconds in transition.seconds(Completed).items():
        milliseconds = max(0, round(1000 * seconds))
        steps[name] = Durations(count=1, total=milliseconds, longest=milliseconds)
    state = transition.after.state
    is_undone = isinstance(state, InError) and state.outcome is Outcome.UNDONE
    undone = is_undone and isinstance(transition.ended, OrderEnded)
    return Figures(
        at=minute_of(now),
        processed=int(isinstance(transition.ended, OrderProcessed)),
        failed=int(isinstance(transition.ended, OrderEnded) and not undone),
        undone=int(undone),
        steps=steps,
    )


PARTITION = "figures"

FORM = RowMapper(Figures, texts=("steps",))


class FiguresLog:
    """The figures of all processes."""

    def __init__(self, table: Table, new_id: NewId) -> None:
        self._table = table
        self._new_id = new_id

    async def add(self, figures: Figures) -> None:
        """Store one process's figures beside those of the others. Raises `UnavailableError`."""
        row = f"{sortable(figures.at)}|{self._new_id()}"
        await self._table.submit(PARTITION, [Put(row, FORM.columns(figures))])

    async def between(self, since: datetime, until: datetime) -> list[Figures]:
        """Return the figures of each process for the minutes from `since` to before `until`.

        Raises `UnavailableError`.
        """
        rows = await self._table.rows(PARTITION, sortable(since), sortable(until))
        found = read_rows(rows, lambda row: FORM.record(columns_of(row)))
        return [figures for figures in found if since <= figures.at < until]

    async def remove_before(self, time: datetime) -> None:
        """Remove the figures of earlier minutes, oldest first. Raises `UnavailableError`."""
        while old := await self._table.rows(PARTITION, "0", sortable(time), MAX_REMOVED):
            await self._table.submit_separately(PARTITION, [Delete(row.key) for row in old])


class Tally:
    """Counts a process's figures of the present minute. A task writes them when the minute is over.

    So no order waits for the write, and the process needs no timer function. The figures are lost
    if the process ends before the write, or if the table cannot be reached.
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

    def count(self, transition: Transition) -> None:
        """Count a committed transition."""
        found = figures_of(transition, self._clock())
        nothing = Figures(at=found.at)
        if found == nothing:
            return
        if found.at not in self._minutes:
            # Others count in this minute too, and have more time.
            self._writing = asyncio.create_task(self._write(found.at), context=unlimited())
        self._minutes[found.at] = self._minutes.get(found.at, nothing).plus(found)

    async def _write(self, minute: datetime) -> None:
        await self._sleep((minute + MINUTE - self._clock()).total_seconds())
        try:
            await self._kept.add(self._minutes.pop(minute))
        except AppError as error:
            log.warning("figures.not_written", extra={"why": str(error)})
