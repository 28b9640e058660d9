"""Applies the scheduler's rules after a wake-up, after a reply, and by polling."""

# The pattern in an hour, 11 of 23: the scheduler

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, islice
from typing import Any

from engine.concurrency import run_all
from engine.decisions.transitions import Decision, NotClaimed, Note, Transition
from engine.domain import work_index
from engine.domain.errors import AppError, NewerWorkflowError, UnavailableError, UnknownOrderError
from engine.domain.messages import AgentReply, OrderReady
from engine.domain.orders import OrderAggregate
from engine.domain.states import UnderWay
from engine.domain.statuses import NotClaimable
from engine.domain.steps import Step
from engine.domain.work_index import IndexRow
from engine.storage.agent_health import AgentHealth, AgentHealthLog, is_overruled
from engine.storage.bucket_reader import BucketReader
from engine.storage.clock_guard import ClockGuard
from engine.storage.unit_of_work import Decide, UnitOfWork
from scheduler.admission.admission import Admission
from scheduler.admission.claim_queue import Candidate
from scheduler.admission.health import HEALTH_MAX_AGE, health_from_reply
from scheduler.rules import SchedulerRules

log = logging.getLogger(__name__)

WAKE_UP_TIME = timedelta(seconds=2)
"""For this time, an order is left to the process that receives its wake-up.

Other processes would only cause conflicts. The time is short, because the others claim an order
only afterwards if its wake-up was lost or found no capacity.
"""

SKIPPED_FOR = timedelta(seconds=5)
"""For this time, an order is skipped if none of the agents with capacity may take it."""
FOR_OTHERS = (NotClaimable.NO_CAPACITY_AT_ITS_OWN, NotClaimable.UNKNOWN_PROVIDER)
"""The reasons why no agent with capacity may take an order."""

AT_ONCE = 64
"""The most orders that are claimed at the same time."""


@dataclass(frozen=True, kw_only=True)
class SchedulerService:
    """Claims orders and records the agents' replies.

    Any number of instances may run at the same time.
    """

    unit_of_work: UnitOfWork
    rules: SchedulerRules
    admission: Admission
    agent_health: AgentHealthLog
    clock_guard: ClockGuard
    _refreshing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def on_order_ready(self, order_ready: OrderReady) -> bool:
        """Claim the orders that are next.

        The order of the wake-up may be among them (SCH-2, SCH-11). Return whether the message
        should come again later, because no other event might lead to the order.
        """
        self.admission.announce(
            Candidate(
                order_id=order_ready.order_id,
                priority=order_ready.priority,
                needs=order_ready.needs or work_index.NO_AGENT,
                since=order_ready.since or self.unit_of_work.clock(),
            )
        )
        await self._refresh()
        await self._claim_what_fits()
        # Slots that were filled here since the last refresh may be free again.
        if self.admission.may_have_capacity(order_ready.order_id):
            await self._refresh(at_once=True)
            await self._claim_what_fits()
        waiting = self.admission.claim_queue
        if order_ready.again or not waiting.needs_redelivery(order_ready.order_id):
            return False
        waiting.note_redelivery()
        return True

    async def receive(self, reply: AgentReply, agent: str) -> None:
        """Record a reply from this agent's queue, and proceed with the order (SCH-5, SCH-6).

        Then claim orders that waited for the slot. Orders for other busy agents are left to the
        processes that receive those agents' replies. Otherwise all processes would claim the same
        orders at the same time.
        """
        await _beside_a_reply(self._refresh())
        order_id, decide = reply.order_id, partial(self._received, reply, agent)
        try:
            if not await self._may_claim():
                decide = partial(self._recorded, reply, agent)
            with self.admission.open_requests.changing(order_id):
                decision = await self._run(order_id, decide)
        except UnknownOrderError:
            log.warning("scheduler.reply_for_unknown_order", extra={"order_id": order_id})
            return
        except NewerWorkflowError:
            # A newer version records the reply; the agent has answered in any case.
            self.admission.open_requests.request_finished(order_id, agent)
            raise
        if isinstance(decision, Note):
            log.warning(
                "scheduler.reply_refused",
                extra={"order_id": decision.order_id, "why": decision.entry.detail},
            )
            return
        self.admission.add_reports(health_from_reply(reply, agent, self.unit_of_work.clock()))
        await _beside_a_reply(self._claim_what_fits(agent))

    def _received(
        self, reply: AgentReply, agent: str, order: OrderAggregate, now: datetime
    ) -> Decision:
        """Decide on a reply. The next step may take the slot of the answered one."""
        runs_at = _agents(order, but=order.step(reply.step))
        capacity = self.admission.capacity_for(
            order.order_id, runs_at, health_from_reply(reply, agent, now)
        )
        return self.rules.receive(order, reply, now, capacity, agent)

    async def _run(self, order_id: str, decide: Decide) -> Decision:
        """Change an order. Often this process has written it last."""
        return await self.unit_of_work.run(order_id, decide, self._intend, from_memory=True)

    async def _intend(self, order: OrderAggregate, decision: Decision) -> None:
        """Reserve the order's slots before the write, because other decisions are made during it.

        This awaits nothing, so no other decision is made before the slots are reserved.
        """
        after = decision.after if isinstance(decision, Transition) else order
        self.admission.open_requests.set_agents(order.order_id, _agents(after))

    def _recorded(
        self, reply: AgentReply, agent: str, order: OrderAggregate, now: datetime
    ) -> Decision:
        """Decide on a reply without a reliable clock (FLT-9).

        A step that no supervisor has recovered counts as in time. No step is started.
        """
        step = order.step(reply.step)
        in_time = min(now, (step and step.complete_by) or now)
        return self.rules.receive(order, reply, in_time, {}, agent)

    async def poll(self) -> None:
        """Claim orders to which no wake-up and no reply has led (SCH-1)."""
        await self._refresh(at_once=True)
        await self._claim_what_fits()

    async def _claim_what_fits(self, agent: str | None = None) -> None:
        """Claim waiting orders while agents have capacity for them.

        With `agent`, claim only orders to which its reply leads. Orders whose partition is
        unavailable are left to the next refresh. Raises `UnavailableError` if no claim of a round
        reached the store.
        """
        while await self._may_claim():
            take = partial(self.admission.take, agent)
            # An order in several queues may be taken from each, and one claim starts all it can.
            fitting = {
                candidate.order_id: candidate for candidate in islice(iter(take, None), AT_ONCE)
            }
            if not fitting:
                return
            if not any(await run_all(map(self._claim, fitting.values()))):
                raise UnavailableError

    async def _may_claim(self) -> bool:
        """Whether the clock is right. Complete-by times and start times depend on it."""
        return await self.clock_guard.agrees()

    async def _claim(self, candidate: Candidate) -> bool:
        """Claim an order, and return whether the store answered.

        An error with this order is logged and does not affect other orders.
        """
        order_id = candidate.order_id
        try:
            with self.admission.open_requests.changing(order_id):
                decision = await self._run(order_id, self._claimed)
        except UnknownOrderError:
            log.warning("scheduler.order_ready_for_unknown_order", extra={"order_id": order_id})
            self.admission.skip(order_id)
        except UnavailableError as away:
            log.warning("scheduler.not_claimed", extra={"order_id": order_id, "why": str(away)})
            return False
        except Exception:
            log.exception("scheduler.claim_failed", extra={"order_id": order_id})
            self.admission.skip(order_id)
        else:
            if isinstance(decision, NotClaimed) and self._is_for_others(decision, candidate):
                self.admission.skip_in(candidate.needs, order_id, SKIPPED_FOR)
        return True

    def _is_for_others(self, refused: NotClaimed, candidate: Candidate) -> bool:
        """Whether no agent with capacity may take the order, or no agent here serves its need."""
        needs = candidate.needs
        is_served = needs == work_index.NO_AGENT or self.admission.is_served(needs)
        return refused.why in FOR_OTHERS or (
            refused.why is NotClaimable.NO_CAPACITY and not is_served
        )

    def _claimed(self, order: OrderAggregate, now: datetime) -> Decision:
        """Decide on the claim. The slot that the order already has counts as free."""
        capacity = self.admission.capacity_for(order.order_id, _agents(order))
        return self.rules.claim(order, now, capacity, self.admission.silent_agents())

    async def _refresh(self, *, at_once: bool = False) -> None:
        """Read the open requests, the waiting orders and the agents' health, if a refresh is due.

        Callers wait for another caller's refresh only until the first one has succeeded, because
        there is no capacity before that.
        """
        waits = self._refreshing.locked()
        if waits and self.admission.has_refreshed:
            return
        async with self._refreshing:
            if waits and self.admission.has_refreshed:  # another caller has refreshed it meanwhile
                return
            if at_once or self.admission.is_refresh_due():
                self.admission.begin_refresh()
                await self._see()

    async def _see(self) -> None:
        store, now = self.unit_of_work.store, self.unit_of_work.clock()
        readers = await store.read_buckets(partial(self._read_bucket, now))
        health = await self._health(now)
        running = chain.from_iterable(reader.running for reader in readers.values())
        waiting = chain.from_iterable(reader.chosen for reader in readers.values())
        self.admission.refresh(running, waiting, health, set(store.buckets) - readers.keys())

    async def _read_bucket(self, now: datetime, bucket: str) -> BucketReader[Candidate]:
        choose = partial(self._candidate, now)
        reader = BucketReader(store=self.unit_of_work.store, bucket=bucket, due=now, choose=choose)
        # An overdue step takes no slot: its agent has stopped, even if no supervisor can recover
        # the step.
        await reader.at_all(
            now - self.rules.clock_tolerance,
            sum(capacity.most for capacity in self.admission.capacity.values()),
        )
        return reader

    async def _health(self, now: datetime) -> Sequence[AgentHealth] | None:
        """Return the recent health reports of the agents. None if they cannot be read.

        Records of silent agents that have reported since are removed.
        """
        try:
            found = await self.agent_health.since(now - HEALTH_MAX_AGE)
            for row in found:
                if is_overruled(row, found):
                    await self.agent_health.remove(row)
        except UnavailableError as away:
            log.warning("scheduler.health_away", extra={"why": str(away)})
            return None
        return found

    def _candidate(self, now: datetime, row: IndexRow) -> Candidate | None:
        """Return the order if it may be claimed. An unreadable row is skipped."""
        if self.admission.claim_queue.is_skipped(row.order_id):
            return None
        try:
            return self._if_wanted(row, now)
        except (LookupError, TypeError, ValueError, OverflowError):
            about = {"order_id": row.order_id, "row": row.key, "why": row.fault}
            log.exception("scheduler.row_passed_over", extra=about)
            self.admission.skip(row.order_id)
            return None

    def _if_wanted(self, row: IndexRow, now: datetime) -> Candidate | None:
        """Return the order if it is due and this app may claim its workflow (FLT-12)."""
        (priority, needs), since = work_index.lane_of(row), work_index.since(row)
        claimable = self.rules.can_claim(
            row.data["Workflow"], row.data["WorkflowVersion"], now - since
        )
        if not (claimable and work_index.may_be_claimed(row, now)) or work_index.pauses(row, now):
            return None
        if self.admission.claim_queue.is_skipped(row.order_id, needs):
            return None
        fresh = work_index.was_announced(row) and abs(now - row.data["UpdatedAt"]) < WAKE_UP_TIME
        return Candidate(
            order_id=row.order_id, priority=priority, needs=needs, since=since, fresh=fresh
        )


async def _beside_a_reply(work: Coroutine[Any, Any, None]) -> None:
    """Do work beside a reply. If it fails, the poll retries it, and the reply is not repeated."""
    try:
        await work
    except* AppError as failures:
        log.warning("scheduler.claims_failed", extra={"why": str(failures.exceptions[0])})


def _agents(order: OrderAggregate, but: Step | None = None) -> list[str]:
    """Return the agents at which the steps of the order run, except for the step `but`."""
    return [step.agent for step in order.in_state(UnderWay) if step is not but]
