"""Retention: removes ended orders by their age, and personal data on request."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from engine.concurrency import run_all
from engine.decisions.transitions import HistoryEntry, Transition, amendment
from engine.declarations.business import Payload
from engine.declarations.workflow import WorkflowDefinition, Workflows
from engine.domain import keys
from engine.domain.causes import Cause, Code
from engine.domain.errors import InputFault, InvalidError, RefusedError, UnavailableError
from engine.domain.events import PersonalDataErased
from engine.domain.orders import OrderAggregate
from engine.domain.personal_data import names_person
from engine.domain.steps import Step
from engine.features.external_events.steps import without_personal_data
from engine.http.models import View
from engine.ports import Clock
from engine.storage.agent_health import KEPT, AgentHealthLog
from engine.storage.alert_log import AlertLog
from engine.storage.archive import Archive, ArchivedOrder, oldest_order_id
from engine.storage.clock_guard import ClockGuard
from engine.storage.figures import FiguresLog, minute_of
from engine.storage.submission_keys import SubmissionKeys
from engine.storage.unit_of_work import UnitOfWork
from operations.api import views
from operations.api.overview import SHOWN
from operations.api.poison import PoisonName, PoisonService
from operations.api.requests import FindRequest, OperatorRequest
from operations.api.views import Acted, ListedOrder

log = logging.getLogger(__name__)

RUN_TIME = timedelta(seconds=70)
"""After this time a run starts nothing more, and the next run continues. Its function has more
time."""

LATE = timedelta(days=1)
"""If removals are later than this, the runs count as falling behind."""

MAX_ALERTS = 1000
"""How many alerts are removed in one call."""

AT_ONCE = 16
"""The most orders of a bucket that are removed at the same time."""


class Found(View):
    """Orders of a customer, on one page of all orders."""

    orders: list[str]
    found: list[ListedOrder]
    """The same orders, as lists show them."""
    looked_at: int
    """How many orders of this page were searched."""
    unreadable: list[str]
    """Orders on this page that cannot be read, so their customer is unknown."""
    messages: list[PoisonName]
    """Poison messages that contain the address, on the first page only."""
    continuation: str | None = None


def erase(
    order: OrderAggregate, request: OperatorRequest, payload: Payload, now: datetime
) -> Transition:
    """Return the transition that erases the customer's data, including data in answers (ANS-5).

    The order, its state and its history stay, with the times that lists and retention need. A
    business key stays only if the erased payload still has it, because a field that was once a key
    may now be personal. The history records who erased the data and why. Raises `RefusedError` if
    nothing is left to erase.
    """
    erased = payload.erased(order.submitted.payload)
    steps = tuple(map(without_personal_data, order.steps))
    if order.submitted.payload == erased and steps == order.steps:
        raise RefusedError(Cause(Code.ERASED_ALREADY))
    left = {keys.business_key(key, order.order_id) for key in payload.distinct_keys(erased)}
    key_rows = tuple(key for key in order.submitted.key_rows if key in left)
    submitted = replace(order.submitted, payload=erased, key_rows=key_rows)
    after = replace(order, submitted=submitted, steps=steps)
    events = (PersonalDataErased(note=request.note),)
    entry = HistoryEntry(at=now, actor=f"operator/{request.operator}", events=events)
    return amendment(order, after, entry)


def is_over(order: ArchivedOrder, since: datetime) -> bool:
    """Whether the order ended before this time and needs no operator."""
    if order.record is None:
        return not order.fault  # a history whose order is gone
    return order.record.is_over and order.record.updated_at < since


@dataclass(frozen=True, slots=True)
class Removed:
    """The result of a run for one bucket, or for one kind of records."""

    count: int
    behind: bool = False
    """Whether the run left records that are overdue by more than `LATE`."""


@dataclass(frozen=True, kw_only=True)
class RetentionService:
    """Removes old records, and erases customers' data."""

    unit_of_work: UnitOfWork
    archive: Archive
    alert_log: AlertLog
    figures: FiguresLog
    agent_health: AgentHealthLog
    poison: PoisonService
    submission_keys: SubmissionKeys
    clock: Clock
    clock_guard: ClockGuard
    payload: Payload
    workflows: Workflows
    keep: timedelta | None
    """How long ended orders, alerts, poison messages and keys are kept. None means for ever."""

    async def sweep(self) -> int:
        """Remove old records and whole old orders. Return how many orders were removed."""
        # To a clock that is ahead, every record would be old.
        if not await self.clock_guard.agrees():
            return 0
        removed = await self._sweep(self.clock() - self.keep) if self.keep is not None else 0
        await self.figures.remove_before(minute_of(self.clock()) - SHOWN)
        await self.agent_health.remove_before(self.clock() - KEPT)
        return removed

    async def _sweep(self, since: datetime) -> int:
        """Sweep all buckets and kinds of records concurrently. Each has the whole run time."""
        until = self.clock() + RUN_TIME
        work = {bucket: self._sweep_bucket(bucket, since, until) for bucket in self.archive.buckets}
        work["alerts"] = self._sweep_others(
            partial(self.alert_log.remove_before, most=MAX_ALERTS), since, until
        )
        work["actions"] = self._sweep_others(self.archive.remove_acted, since, until)
        work["poison"] = self._sweep_others(self.poison.remove_before, since, until)
        work["keys"] = self._sweep_others(self.submission_keys.remove_before, since, until)
        outcomes = await run_all(work.values(), at_most=len(work))
        removed = dict(zip(work, outcomes, strict=True))
        orders = sum(removed[bucket].count for bucket in self.archive.buckets)
        _log_run(orders, removed)
        return orders

    async def _sweep_others(
        self, remove: Callable[[datetime], Awaitable[int]], since: datetime, until: datetime
    ) -> Removed:
        """Remove records older than `since` in parts, until none is left or the time is up."""
        count = 0
        while part := await remove(since):
            count += part
            if self.clock() >= until:
                return Removed(count, behind=await remove(since - LATE) > 0)
        return Removed(count)

    async def _sweep_bucket(self, bucket: str, since: datetime, until: datetime) -> Removed:
        """Sweep a bucket from the place where the last run ended.

        So old orders that stay do not keep the runs from the orders behind them.
        """
        removed, start = 0, await self.archive.place(bucket)
        while True:
            page = await self.archive.oldest(bucket, since, start)
            _tell_of_unreadable(page.orders)
            over = [order for order in page.orders if is_over(order, since)]
            removed += sum(await run_all((self._remove(order) for order in over), at_most=AT_ONCE))
            # After each page: a time-out may cut the run short.
            if page.continuation != start:
                await self.archive.go_on_from(bucket, page.continuation)
            start = page.continuation
            if not start or self.clock() >= until:
                break
        behind = bool(start) and start < oldest_order_id(bucket, since - LATE)
        return Removed(removed, behind=behind)

    async def _remove(self, order: ArchivedOrder) -> bool:
        """Remove an order, and return whether this succeeded. An error is logged."""
        try:
            await self.archive.remove(order)
        except UnavailableError:
            raise
        except Exception:
            log.exception("retention.not_removed", extra={"order_id": order.order_id})
            return False
        return True

    async def find(self, request: FindRequest) -> Found:
        """Find a customer's orders by e-mail address, page by page through all orders.

        There is no index of customers. Raises `InvalidError`.
        """
        buckets = self.archive.buckets
        is_first = request.continuation is None
        start = request.continuation or f"{buckets[0]}-"
        bucket = keys.bucket_of(start)
        if bucket not in buckets:
            raise InvalidError([InputFault("continuation", "unknown-page")])
        # For every page, because a caller may begin at any page. The address is personal data.
        log.info("operators.customer_searched", extra={"operator": request.operator})
        page = await self.archive.oldest(bucket, None, start)
        _tell_of_unreadable(page.orders)
        records = (order.record for order in page.orders if order.record)
        theirs = [views.found(order) for order in records if self._is_of(order, request.email)]
        next_bucket = next((f"{name}-" for name in buckets if name > bucket), None)
        return Found(
            orders=[order.order_id for order in theirs],
            found=theirs,
            looked_at=len(page.orders),
            unreadable=[order.order_id for order in page.orders if order.fault],
            messages=list(await self.poison.naming(request.email)) if is_first else [],
            continuation=page.continuation or next_bucket,
        )

    def _is_of(self, order: OrderAggregate, email: str) -> bool:
        """Whether the order belongs to this person, by its payload or by an answer (ANS-5)."""
        if self.payload.belongs_to(order.submitted.payload, email):
            return True
        workflow = self.workflows.find(order.workflow, order.workflow_version)
        return any(_is_of(step, workflow, email) for step in order.steps)

    async def erase(self, order_id: str, request: OperatorRequest) -> Acted:
        """Erase the personal data of an order.

        Poison messages that name the order are removed first, even if the order does not exist.
        Raises `RefusedError` or `UnknownOrderError`.
        """
        await self.poison.forget(order_id)
        await self.unit_of_work.run(
            order_id, lambda order, now: erase(order, request, self.payload, now)
        )
        log.info("operators.erased", extra={"order_id": order_id})
        return Acted(order_id=order_id, status="erased")


def _is_of(step: Step, workflow: WorkflowDefinition | None, email: str) -> bool:
    """Whether the recorded answer of a step names this person as the customer of the order.

    All personal data counts if the app no longer has the step.
    """
    definition = workflow.definition(step.name) if workflow else None
    owners = definition.owners if definition else step.rules.personal
    result = step.result or {}
    return names_person([result.get(name) for name in owners], email)


def _log_run(orders: int, removed: Mapping[str, Removed]) -> None:
    alerts, poison, forgotten = (removed[name].count for name in ("alerts", "poison", "keys"))
    if orders or alerts or poison or forgotten:
        counts = {"orders": orders, "alerts": alerts, "poison": poison, "keys": forgotten}
        log.info("retention.swept", extra=counts)
    if poison:
        log.warning("retention.poison_removed", extra={"count": poison})
    if behind := [name for name, removal in removed.items() if removal.behind]:
        log.error("retention.behind", extra={"what": behind})  # an alert counts these


def _tell_of_unreadable(orders: Iterable[ArchivedOrder]) -> None:
    for order in orders:
        if order.fault:
            log.error(
                "retention.order_passed_over",
                extra={"order_id": order.order_id, "why": order.fault},
            )
