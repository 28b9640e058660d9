"""Operators export a copy of all orders, and restore it into an empty store.

A restored order has the state at the time of the copy. Later changes are unknown. So each of its
steps that is not settled counts as possibly attempted since, and is in doubt. It is requested again
with the same idempotency key, or waits for an operator if its service may have forgotten the key
(AGT-3, AGT-12).
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.concurrency import run_all
from engine.decisions import restore
from engine.decisions.restore import Copied
from engine.decisions.transitions import OPERATOR, HistoryEntry, Transition, transition_of
from engine.declarations.business import AgentDefinition
from engine.domain.causes import Cause, Code
from engine.domain.errors import AppError, InputFault, InvalidError, UnreadableRowError
from engine.domain.events import Action, ActionTaken
from engine.domain.keys import bucket_of, order_key, state_key
from engine.domain.orders import OrderAggregate
from engine.http.models import View
from engine.ports import Clock
from engine.storage.copies import (
    COPY_ID,
    ORDERS,
    CopiedLine,
    Copies,
    as_json,
    from_json,
    history_of,
)
from engine.storage.orders import loaded, record_of
from engine.storage.tables import Stored
from engine.storage.unit_of_work import UnitOfWork
from engine.words.errors import words_of_error
from operations.api.requests import CopiedRows, ExportRequest, OperatorRequest, RestoreRequest

log = logging.getLogger(__name__)

AT_ONCE = 16
"""How many lines are restored at the same time."""


class CopyPage(View):
    """One page of a copy."""

    lines: list[CopiedRows]
    continuation: str | None = None


class RefusedLine(View):
    """A line that was not restored. At most the history of its order was written."""

    what: str
    """The order, or the table and partition."""
    why: str


class RestoredLines(View):
    """The outcome for the lines of a copy that one call restored."""

    restored: int
    """How many orders were written."""
    present: int
    """How many orders an earlier call for the same copy had already written."""
    refused: list[RefusedLine]


class EndOfRestoring(View):
    """The end of the restore of a copy."""

    ended: str


def restored(
    order: OrderAggregate, request: OperatorRequest, copied: Copied, now: datetime
) -> Transition:
    """Return the transition that records a copied order again, with its work items."""
    decided = restore.decide(order, copied, request.note, now)
    return transition_of(decided, f"operator/{request.operator}", at=now)


Outcome = bool | RefusedLine | None
"""The outcome for a line.

True if an order was written, and False if it already existed. None for other rows. A `RefusedLine`
if the line was refused.
"""


@dataclass(frozen=True, kw_only=True)
class CopyService:
    """Exports a copy of all orders page by page, and restores it line by line."""

    copies: Copies
    unit_of_work: UnitOfWork
    agents: Sequence[AgentDefinition]
    clock_tolerance: timedelta
    clock: Clock

    async def export(self, request: ExportRequest) -> CopyPage:
        """Return a page of a copy of all orders, customers' keys, alerts and poison messages.

        The audit lists the export first: its first page, and further pages once an hour. Raises
        `InvalidError` and `UnavailableError`.
        """
        now = self.clock()
        taken = ActionTaken(action=Action.EXPORT, note=request.note)
        entry = HistoryEntry(at=now, actor=f"{OPERATOR}{request.operator}", events=(taken,))
        since = now if request.continuation is None else _hour_of(now)
        await self.unit_of_work.store.note_act_on_all(since, entry)
        if request.continuation is None:
            log.info("operators.exported", extra={"operator": request.operator})
        lines, following = await self.copies.page(request.continuation or "")
        return CopyPage(lines=list(map(_shown, lines)), continuation=following or None)

    async def restore(self, copy: str, request: RestoreRequest) -> RestoredLines:
        """Put lines of a copy into the store, which must be empty before the first line.

        The same lines can be sent again. Existing rows are not changed. Raises `InvalidError`,
        `RefusedError` and `UnavailableError`.
        """
        _check(copy)
        await self.copies.begin(copy)
        log.info("operators.restored", extra={"operator": request.operator, "copy": copy})
        work = (self._restore(line, request) for line in request.lines)
        outcomes = await run_all(work, at_most=AT_ONCE)
        refused = [outcome for outcome in outcomes if isinstance(outcome, RefusedLine)]
        return RestoredLines(
            restored=sum(outcome is True for outcome in outcomes),
            present=sum(outcome is False for outcome in outcomes),
            refused=refused,
        )

    async def end(self, copy: str, request: OperatorRequest) -> EndOfRestoring:
        """End the restore of a copy; from then on the store takes no further lines."""
        _check(copy)
        await self.copies.end(copy)
        log.info("operators.restoring_ended", extra={"operator": request.operator, "copy": copy})
        return EndOfRestoring(ended=copy)

    async def _restore(self, given: CopiedRows, request: RestoreRequest) -> Outcome:
        """Restore a line. A fault in it does not affect other lines."""
        try:
            line = self._line(given)
            if line.table == ORDERS:
                return await self._restore_order(line, request)
            await self.copies.put(line)
        except (ValueError, InvalidError, UnreadableRowError) as fault:
            what = given.order or f"{given.table} {given.partition}"
            why = words_of_error(fault) if isinstance(fault, AppError) else str(fault)
            return RefusedLine(what=what, why=why)
        return None

    def _line(self, given: CopiedRows) -> CopiedLine:
        """Return the line. Raises `InvalidError` with all faults if it does not fit this store."""
        rows = from_json(given.rows)
        if faults := list(self._faults(given, rows)):
            raise InvalidError(faults)
        return CopiedLine(
            table=given.table,
            partition=given.partition,
            order_id=given.order,
            at=given.at,
            rows=rows,
        )

    def _faults(self, given: CopiedRows, keys: Iterable[str]) -> Iterator[InputFault]:
        if given.partition not in self.copies.partitions.get(given.table, ()):
            facts = {"partition": given.partition, "table": given.table}
            yield InputFault("", "no-partition", facts)
        if (given.table == ORDERS) != (given.order is not None):
            yield InputFault("", "order-misplaced")
        if given.order and bucket_of(given.order) != given.partition:
            yield InputFault("", "other-bucket")
        if given.order and not all(_is_of(given.order, key) for key in keys):
            yield InputFault("", "row-of-another-order")

    async def _restore_order(self, line: CopiedLine, request: RestoreRequest) -> bool | None:
        """Insert the history, and then the order in one transaction, like any other change.

        Returns False if the order already exists, and None for a part of an order with history
        only. Raises `UnreadableRowError`, and `InvalidError` for values that no row can hold.
        """
        order_id = str(line.order_id)
        own = [key for key in (order_key(order_id), state_key(order_id)) if key in line.rows]
        order = loaded((record_of(Stored(key, line.rows[key], "")), "") for key in own)
        if order and order.order_id != order_id:
            raise UnreadableRowError(Cause(Code.ROWS_DIFFER, {"order": line.order_id}))
        await self.copies.put(history_of(line))
        if order is None:
            return None
        copied = Copied(at=line.at, agents=self.agents, clock_tolerance=self.clock_tolerance)
        return await self.unit_of_work.commit(restored(order, request, copied, self.clock()))


def _is_of(order_id: str, key: str) -> bool:
    """Whether the row is one of the order's own rows."""
    of_history = key.startswith(f"{order_id}|history|")
    return of_history or key in (order_key(order_id), state_key(order_id))


def _shown(line: CopiedLine) -> CopiedRows:
    return CopiedRows(
        table=line.table,
        partition=line.partition,
        order=line.order_id,
        at=line.at,
        rows=as_json(line.rows),
    )


def _hour_of(time: datetime) -> datetime:
    return time.replace(minute=0, second=0, microsecond=0)


def _check(copy: str) -> None:
    if not COPY_ID.fullmatch(copy):
        raise InvalidError([InputFault("copy", "no-copy")])
