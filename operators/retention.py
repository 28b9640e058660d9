"""What is kept, and for how long: finished orders are removed by their age, and personal data on request."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from core import keys
from core.business import Payload
from core.changes import Change, HistoryEntry, transition
from core.errors import InvalidError, RefusedError, UnavailableError
from core.gathering import run_all
from core.happenings import ActedOn
from core.orders import Snapshot
from core.ports import Clock
from entrypoints.models import View
from operators.overview import SHOWN
from operators.poison import PoisonService
from operators.requests import FindRequest, OperatorRequest
from operators.views import Acted
from stores.agent_health import KEPT, AgentHealthLog
from stores.alert_log import AlertLog
from stores.archive import Archive, ArchivedOrder, oldest_order_id
from stores.clock_guard import ClockGuard
from stores.figures import FiguresLog, minute_of
from stores.submission_keys import SubmissionKeys
from stores.transitions import Transitions

log = logging.getLogger(__name__)

RUN_TIME = timedelta(minutes=2)
"""How long a run goes on, and it ends with what it has begun: the host allows more. The rest waits for the next run."""

LATE = timedelta(days=1)
"""What is left although it should have been removed so long ago: then runs do not keep pace."""

MAX_ALERTS = 1000
AT_ONCE = 16


class Found(View):
    """Orders of a customer, on one page of all orders."""

    orders: list[str]
    unreadable: list[str]
    """Those of whoever it is, of which nobody can read whose they are."""
    continuation: str | None = None


def erase(order: Snapshot, request: OperatorRequest, payload: Payload, now: datetime) -> Change:
    """Forget who the customer is; order, state and history stay, and say who erased it and why.

    Raises `RefusedError` if nothing is left to erase.
    """
    erased = payload.erased(order.order.payload)
    if order.order.payload == erased:
        raise RefusedError("the customer's data was erased already")
    after = replace(order, order=replace(order.order, payload=erased))
    happened = (ActedOn(what="erased", note=request.note),)
    entry = HistoryEntry(at=now, actor=f"operator/{request.operator}", happened=happened)
    return transition(order, after, entry)


def is_over(order: ArchivedOrder, since: datetime) -> bool:
    """Whether the order is finished, with nothing left to do for anybody, since before that time."""
    if order.snapshot is None:
        return not order.fault  # a history whose order is gone
    state = order.snapshot.state
    return state.meaning.is_over and state.updated_at < since


@dataclass(frozen=True, slots=True)
class Removed:
    """What a run did to one bucket, or to one kind of records."""

    count: int
    behind: bool = False
    """Whether its time was up, and what is left should have been removed long ago."""


@dataclass(frozen=True, kw_only=True)
class RetentionService:
    """Removes what is too old, and erases who a customer was."""

    transitions: Transitions
    archive: Archive
    alert_log: AlertLog
    figures: FiguresLog
    agent_health: AgentHealthLog
    poison: PoisonService
    submission_keys: SubmissionKeys
    clock: Clock
    clock_guard: ClockGuard
    payload: Payload
    keep: timedelta | None
    """For how long finished orders, alerts, poison messages and customers' keys are kept; None for ever."""

    async def sweep(self) -> int:
        """Remove what is too old, whole orders only; return how many orders that were.

        Nothing by a clock that is off: to one that is ahead, all is old.
        """
        if not await self.clock_guard.agrees():
            return 0
        removed = await self._sweep(self.clock() - self.keep) if self.keep is not None else 0
        await self.figures.remove_before(minute_of(self.clock()) - SHOWN)
        await self.agent_health.remove_before(self.clock() - KEPT)
        return removed

    async def _sweep(self, since: datetime) -> int:
        """Go through all that is kept, side by side, so that each bucket and kind has the same time."""
        until = self.clock() + RUN_TIME
        work = {bucket: self._sweep_bucket(bucket, since, until) for bucket in self.archive.buckets}
        work["alerts"] = self._sweep_others(
            partial(self.alert_log.remove_before, most=MAX_ALERTS), since, until
        )
        work["poison"] = self._sweep_others(self.poison.remove_before, since, until)
        work["keys"] = self._sweep_others(self.submission_keys.remove_before, since, until)
        outcomes = await run_all(work.values(), at_most=len(work))
        removed = dict(zip(work, outcomes, strict=True))
        orders = sum(removed[bucket].count for bucket in self.archive.buckets)
        _tell_of_run(orders, removed)
        return orders

    async def _sweep_others(
        self, remove: Callable[[datetime], Awaitable[int]], since: datetime, until: datetime
    ) -> Removed:
        """Remove what is older than `since`, part by part, until nothing of it is left or the time is up."""
        count = 0
        while part := await remove(since):
            count += part
            if self.clock() >= until:
                return Removed(count, behind=await remove(since - LATE) > 0)
        return Removed(count)

    async def _sweep_bucket(self, bucket: str, since: datetime, until: datetime) -> Removed:
        """Read on from where the last run ended: old orders that stay must not keep it from those behind them."""
        removed, start = 0, await self.archive.place(bucket)
        while True:
            page = await self.archive.oldest(bucket, since, start)
            _tell_of_unreadable(page.orders)
            over = [order for order in page.orders if is_over(order, since)]
            removed += sum(await run_all((self._remove(order) for order in over), at_most=AT_ONCE))
            if (
                page.continuation != start
            ):  # after each page: a run may be cut short by its time-out
                await self.archive.go_on_from(bucket, page.continuation)
            start = page.continuation
            if not start or self.clock() >= until:
                break
        return Removed(
            removed, behind=bool(start) and start < oldest_order_id(bucket, since - LATE)
        )

    async def _remove(self, order: ArchivedOrder) -> bool:
        """Remove an order; what is wrong with it keeps none of those behind it."""
        try:
            await self.archive.remove(order)
        except UnavailableError:
            raise
        except Exception:
            log.exception("retention.not_removed", extra={"order_id": order.order_id})
            return False
        return True

    async def find(self, request: FindRequest) -> Found:
        """Find a customer's orders, page by page through all orders; there is no index of customers.

        Raises `InvalidError`.
        """
        buckets = self.archive.buckets
        start = request.continuation or f"{buckets[0]}-"
        bucket = keys.bucket_of(start)
        if bucket not in buckets:
            raise InvalidError(["continuation: expected what the page before said"])
        page = await self.archive.oldest(bucket, None, start)
        _tell_of_unreadable(page.orders)
        theirs = [
            each.order_id
            for each in page.orders
            if each.snapshot and self.payload.belongs_to(each.snapshot.order.payload, request.email)
        ]
        following = [f"{name}-" for name in buckets if name > bucket][:1]
        return Found(
            orders=theirs,
            unreadable=[each.order_id for each in page.orders if each.fault],
            continuation=page.continuation or next(iter(following), None),
        )

    async def erase(self, order_id: str, request: OperatorRequest) -> Acted:
        """Forget who the customer of an order is; raises `RefusedError` or `UnknownOrderError`.

        Submissions of it that nobody could read go first, and whatever becomes of the rest: there
        may be no such order.
        """
        await self.poison.forget(order_id)
        await self.transitions.apply(
            order_id, lambda order, now: erase(order, request, self.payload, now)
        )
        log.info("operators.erased", extra={"order_id": order_id})
        return Acted(order_id=order_id, status="erased")


def _tell_of_run(orders: int, removed: Mapping[str, Removed]) -> None:
    alerts, poison, forgotten = (removed[name].count for name in ("alerts", "poison", "keys"))
    if orders or alerts or poison or forgotten:
        counts = {"orders": orders, "alerts": alerts, "poison": poison, "keys": forgotten}
        log.info("retention.swept", extra=counts)
    if poison:
        log.warning("retention.poison_removed", extra={"count": poison})
    if behind := [name for name, each in removed.items() if each.behind]:
        log.error("retention.behind", extra={"what": behind})  # an alert counts these


def _tell_of_unreadable(orders: Iterable[ArchivedOrder]) -> None:
    for order in orders:
        if order.fault:
            log.error(
                "retention.order_passed_over",
                extra={"order_id": order.order_id, "why": order.fault},
            )
