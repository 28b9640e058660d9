"""Sweeps the work index for orders whose complete-by time has passed."""

# The pattern in an hour, 18 of 23: the sweep

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import product

from engine.concurrency import run_all
from engine.decisions.transitions import Decision
from engine.domain import work_index
from engine.domain.errors import UnavailableError
from engine.domain.orders import OrderAggregate
from engine.domain.work_index import WorkItemKind
from engine.ports import Leadership
from engine.storage.agent_health import KEPT, AgentHealth, AgentHealthLog
from engine.storage.clock_guard import ClockGuard
from engine.storage.sweeps import Sweep, SweepLog
from engine.storage.unit_of_work import UnitOfWork
from supervisor.rules import SupervisorRules
from supervisor.silence import SilenceRecorder

log = logging.getLogger(__name__)

PAGE = 100
"""The most orders that are recovered between two checks of the lease."""


@dataclass(frozen=True, kw_only=True)
class SupervisorService:
    """One of any number of supervisors. Only the holder of the lease sweeps (SUP-5)."""

    unit_of_work: UnitOfWork
    leadership: Leadership
    sweeps: SweepLog
    rules: SupervisorRules
    agent_health: AgentHealthLog
    clock_guard: ClockGuard
    checked: Sequence[WorkItemKind]
    """The kinds of work items that are checked when they are due, with one query for each kind."""

    async def sweep(self) -> int:
        """Recover every overdue order (SUP-2, SCH-17). Return how many were recovered."""
        # A clock that is ahead would make every running order overdue.
        if not await self.clock_guard.agrees():
            return 0
        if not await self.leadership.acquire():
            return 0
        silence = SilenceRecorder(
            agent_health=self.agent_health,
            instance=self.rules.instance,
            clock=self.unit_of_work.clock,
        )
        buckets = self.unit_of_work.store.buckets
        ranges = list(product(buckets, self.checked))
        sweeps = (self._sweep_bucket(bucket, kind, silence) for bucket, kind in ranges)
        found = zip(ranges, await run_all(sweeps), strict=True)
        recovered = sum(n for (_, kind), n in found if kind is not WorkItemKind.DEADLINE)
        if self.leadership.held():  # else the sweep is incomplete
            log.info("supervisor.swept", extra={"recovered": recovered})  # an alert counts these
        await self.sweeps.record(
            Sweep(at=self.unit_of_work.clock(), instance=self.rules.instance, recovered=recovered)
        )
        return recovered

    async def _sweep_bucket(self, bucket: str, kind: WorkItemKind, silence: SilenceRecorder) -> int:
        """Recover the overdue orders of a bucket page by page, while this process has the lease."""
        start, end = work_index.overdue(
            self.unit_of_work.clock() - self.rules.clock_tolerance, kind
        )
        found = 0
        while self.leadership.held():
            page = await self.unit_of_work.store.work_items(bucket, start, end, PAGE)
            found += await self._recover_all([row.order_id for row in page], silence)
            if len(page) < PAGE:
                break
            start = page[-1].key + " "
        return found

    async def _recover_all(self, order_ids: Sequence[str], silence: SilenceRecorder) -> int:
        """Recover these orders, and return how many were recovered."""
        if not order_ids:
            return 0
        health = await self._read_health()
        return sum(
            await run_all(self._recover(order_id, health, silence) for order_id in order_ids)
        )

    async def _read_health(self) -> Sequence[AgentHealth] | None:
        """Return the agents' health reports. None if they cannot be read."""
        try:
            return await self.agent_health.since(self.unit_of_work.clock() - KEPT)
        except UnavailableError as away:
            log.warning("supervisor.health_away", extra={"why": str(away)})
            return None

    async def _recover(
        self, order_id: str, health: Sequence[AgentHealth] | None, silence: SilenceRecorder
    ) -> bool:
        """Recover an order. One of this and a concurrent reply, claim or recovery wins (SUP-4).

        If `health` is None, no failure is counted, no step fails, and no agent counts as silent. An
        error with the order is logged at each sweep, and does not affect other orders.
        """
        decide = partial(self._recovered, health)
        record = None if health is None else partial(self._record_silence, health, silence)
        try:
            await self.unit_of_work.run(order_id, decide, record)
        except UnavailableError:
            raise
        except Exception:
            log.exception("supervisor.not_recovered", extra={"order_id": order_id})
            return False
        return True

    def _recovered(
        self, health: Sequence[AgentHealth] | None, order: OrderAggregate, now: datetime
    ) -> Decision:
        return self.rules.recover(order, now, health)

    async def _record_silence(
        self,
        health: Sequence[AgentHealth],
        silence: SilenceRecorder,
        order: OrderAggregate,
        decision: Decision,
    ) -> None:
        """Record the agents that this order shows to be silent, before the order is recovered.

        Otherwise a scheduler could receive its wake-up first, and send the request again
        immediately.
        """
        del decision
        now = self.unit_of_work.clock()
        for agent, requested_at in self.rules.unresponsive_agents(order, now, health):
            await silence.record(agent, requested_at, health)
