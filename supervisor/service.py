"""Sweeps the work index for orders whose complete-by time has passed."""

import logging
from collections.abc import Mapping, Sequence
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
from engine.storage.agent_health import KEPT, AgentHealth, AgentHealthLog, unresponsive_since
from engine.storage.clock_guard import ClockGuard
from engine.storage.sweeps import Sweep, SweepLog
from engine.storage.unit_of_work import UnitOfWork
from supervisor.rules import SupervisorRules

log = logging.getLogger(__name__)

PAGE = 100
"""Maximum number of orders that are recovered between two checks of the lease."""


@dataclass(frozen=True, kw_only=True)
class SupervisorService:
    """One of any number of supervisors; only the holder of the lease sweeps (SUP-5)."""

    unit_of_work: UnitOfWork
    leadership: Leadership
    sweeps: SweepLog
    rules: SupervisorRules
    agent_health: AgentHealthLog
    clock_guard: ClockGuard

    async def sweep(self) -> int:
        """Recover every overdue order (SUP-2); return how many were recovered.

        It does nothing without the lease, or if the clock is off: a clock that is ahead would make
        every running order overdue.
        """
        if not await self.clock_guard.agrees():
            return 0
        if not await self.leadership.acquire():
            return 0
        unresponsive: dict[str, datetime] = {}
        buckets = self.unit_of_work.store.buckets
        ranges = product(buckets, (WorkItemKind.RUNNING, WorkItemKind.WAITING))
        try:
            sweeps = (self._sweep_bucket(bucket, kind, unresponsive) for bucket, kind in ranges)
            recovered = sum(await run_all(sweeps))
        finally:
            await self._record_unresponsive_agents(unresponsive)
        if self.leadership.held():  # else the sweep is incomplete
            log.info("supervisor.swept", extra={"recovered": recovered})  # an alert counts these
        await self.sweeps.record(
            Sweep(at=self.unit_of_work.clock(), instance=self.rules.instance, recovered=recovered)
        )
        return recovered

    async def _sweep_bucket(
        self, bucket: str, kind: WorkItemKind, unresponsive: dict[str, datetime]
    ) -> int:
        """Recover the overdue orders of a bucket page by page, for as long as the lease is held.

        Add to `unresponsive` the agents that have not reported since their request, and its time.
        """
        start, end = work_index.overdue(
            self.unit_of_work.clock() - self.rules.clock_tolerance, kind
        )
        found = 0
        while self.leadership.held():
            page = await self.unit_of_work.store.work_items(bucket, start, end, PAGE)
            found += await self._recover_all([row.order_id for row in page], unresponsive)
            if len(page) < PAGE:
                break
            start = page[-1].key + " "
        return found

    async def _recover_all(
        self, order_ids: Sequence[str], unresponsive: dict[str, datetime]
    ) -> int:
        """Recover each of these orders; return how many were recovered."""
        if not order_ids:
            return 0
        health = await self._read_health()
        if health is None:  # no failure is counted, and no agent counts as silent
            health, unresponsive = (), {}
        return sum(
            await run_all(self._recover(order_id, health, unresponsive) for order_id in order_ids)
        )

    async def _read_health(self) -> Sequence[AgentHealth] | None:
        """Return the agents' health reports; None if they cannot be read."""
        try:
            return await self.agent_health.since(self.unit_of_work.clock() - KEPT)
        except UnavailableError as away:
            log.warning("supervisor.health_away", extra={"why": str(away)})
            return None

    async def _recover(
        self, order_id: str, health: Sequence[AgentHealth], unresponsive: dict[str, datetime]
    ) -> bool:
        """Recover one order; of this and a concurrent reply, claim or recovery, one wins (SUP-4).

        An error with the order does not stop the others; it is logged at each sweep.
        """
        try:
            await self.unit_of_work.run(order_id, partial(self._recovered, health, unresponsive))
        except UnavailableError:
            raise
        except Exception:
            log.exception("supervisor.not_recovered", extra={"order_id": order_id})
            return False
        return True

    def _recovered(
        self,
        health: Sequence[AgentHealth],
        unresponsive: dict[str, datetime],
        order: OrderAggregate,
        now: datetime,
    ) -> Decision:
        """Decide about an order, and add its agents that have not reported to `unresponsive`."""
        for agent, requested_at in self.rules.unresponsive_agents(order, now, health):
            unresponsive[agent] = min(requested_at, unresponsive.get(agent, requested_at))
        return self.rules.recover(order, now, health)

    async def _record_unresponsive_agents(self, unresponsive: Mapping[str, datetime]) -> None:
        """Record each silent agent once; the agent's own next report overrules the record."""
        health = await self._read_health() if unresponsive else None
        if health is None:
            return
        now = self.unit_of_work.clock()
        try:
            for agent, requested_at in unresponsive.items():
                since = unresponsive_since(health, agent, now) or requested_at
                await self._record_unresponsive(agent, since, health)
        except UnavailableError as away:
            log.warning("supervisor.health_not_published", extra={"why": str(away)})

    async def _record_unresponsive(
        self, agent: str, since: datetime, health: Sequence[AgentHealth]
    ) -> None:
        """Record since when the agent is silent, in place of an earlier record."""
        before = next(
            (row for row in health if row.agent == agent and row.unresponsive_since), None
        )
        now, instance = self.unit_of_work.clock(), self.rules.instance
        record = AgentHealth(agent=agent, instance=instance, at=now, unresponsive_since=since)
        await self.agent_health.publish(record, before)
