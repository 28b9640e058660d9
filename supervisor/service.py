"""Sweeps the agenda for orders whose complete-by time has passed."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from core import agenda
from core.changes import Decision
from core.errors import UnavailableError
from core.gathering import run_all
from core.orders import Snapshot
from core.ports import Leadership
from stores.agent_health import KEPT, AgentHealth, AgentHealthLog, silent_since
from stores.clock_guard import ClockGuard
from stores.sweeps import Sweep, SweepLog
from stores.transitions import Transitions
from supervisor.rules import SupervisorRules

log = logging.getLogger(__name__)

PAGE = 100
"""Orders that are looked at between two looks at the lease."""


@dataclass(frozen=True, kw_only=True)
class SupervisorService:
    """One of any number of supervisors; only the holder of the lease sweeps (SUP-5)."""

    transitions: Transitions
    leadership: Leadership
    sweeps: SweepLog
    rules: SupervisorRules
    agent_health: AgentHealthLog
    clock_guard: ClockGuard

    async def sweep(self) -> int:
        """Recover every order that is overdue (SUP-2); return how many were.

        Does nothing unless elected, nor with a clock that is off: to one that is ahead, all that runs is overdue.
        """
        if not await self.clock_guard.agrees():
            return 0
        if not await self.leadership.acquire():
            return 0
        silent: dict[str, datetime] = {}
        buckets = self.transitions.store.buckets
        try:
            recovered = sum(await run_all(self._sweep_bucket(bucket, silent) for bucket in buckets))
        finally:
            await self._tell_of_silence(silent)
        if self.leadership.held():  # else it did not come to its end
            log.info("supervisor.swept", extra={"recovered": recovered})  # an alert counts these
        await self.sweeps.record(
            Sweep(at=self.transitions.clock(), instance=self.rules.instance, recovered=recovered)
        )
        return recovered

    async def _sweep_bucket(self, bucket: str, silent: dict[str, datetime]) -> int:
        """Go through the overdue orders page by page, for as long as the lease is held.

        Note in `silent` since when the agents have been asked that have said nothing since.
        """
        start, end = agenda.overdue(self.transitions.clock() - self.rules.clock_tolerance)
        found = 0
        while self.leadership.held():
            page = await self.transitions.store.agenda(bucket, start, end, PAGE)
            found += await self._recover_all([row.order_id for row in page], silent)
            if len(page) < PAGE:
                break
            start = page[-1].key + " "
        return found

    async def _recover_all(self, order_ids: Sequence[str], silent: dict[str, datetime]) -> int:
        """Recover each of these orders; return how many were."""
        if not order_ids:
            return 0
        heard = await self._heard()
        if heard is None:  # no attempt is charged, and no agent is called silent
            heard, silent = (), {}
        return sum(await run_all(self._recover(order_id, heard, silent) for order_id in order_ids))

    async def _heard(self) -> Sequence[AgentHealth] | None:
        """Return what the agents said of themselves; None if nobody can tell."""
        try:
            return await self.agent_health.since(self.transitions.clock() - KEPT)
        except UnavailableError as away:
            log.warning("supervisor.health_away", extra={"why": str(away)})
            return None

    async def _recover(
        self, order_id: str, heard: Sequence[AgentHealth], silent: dict[str, datetime]
    ) -> bool:
        """Ask for another try; against a reply, a claim or another supervisor exactly one wins (SUP-4).

        What is wrong with one order costs no other anything: it is logged at each sweep until somebody mends it.
        """
        try:
            await self.transitions.apply(order_id, partial(self._recovered, heard, silent))
        except UnavailableError:
            raise
        except Exception:
            log.exception("supervisor.not_recovered", extra={"order_id": order_id})
            return False
        return True

    def _recovered(
        self,
        heard: Sequence[AgentHealth],
        silent: dict[str, datetime],
        order: Snapshot,
        now: datetime,
    ) -> Decision:
        """Decide about an order, and note which agents have said nothing since they were asked."""
        for agent, asked_at in self.rules.asked_in_vain(order, now, heard):
            silent[agent] = min(asked_at, silent.get(agent, asked_at))
        return self.rules.recover(order, now, heard)

    async def _tell_of_silence(self, silent: Mapping[str, datetime]) -> None:
        """Tell everybody, once for each agent and not for each order; its own next word overrules that."""
        heard = await self._heard() if silent else None
        if heard is None:
            return
        try:
            for agent, asked_at in silent.items():
                await self._tell(
                    agent, silent_since(heard, agent, self.transitions.clock()) or asked_at, heard
                )
        except UnavailableError as away:
            log.warning("supervisor.silence_not_told", extra={"why": str(away)})

    async def _tell(self, agent: str, since: datetime, heard: Sequence[AgentHealth]) -> None:
        """Say since when the agent is silent, in the place of what a supervisor said before."""
        before = next((each for each in heard if each.agent == agent and each.unheard_since), None)
        now, instance = self.transitions.clock(), self.rules.instance
        silence = AgentHealth(agent=agent, instance=instance, at=now, unheard_since=since)
        await self.agent_health.publish(silence, before)
