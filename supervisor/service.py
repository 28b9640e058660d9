"""Sweeps the agenda for orders whose complete-by time has passed."""

import logging
from dataclasses import dataclass

from core import agenda
from core.errors import UnavailableError
from core.gathering import run_all
from core.ports import Leadership
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

    async def sweep(self) -> int:
        """Recover every order that is overdue (SUP-2); return how many were. Does nothing unless elected."""
        if not await self.leadership.acquire():
            return 0
        found = await run_all(map(self._sweep_bucket, self.transitions.store.buckets))
        recovered = sum(found)
        if self.leadership.held():  # else it did not come to its end
            log.info("supervisor.swept", extra={"recovered": recovered})  # an alert counts these
        await self.sweeps.record(Sweep(at=self.transitions.clock(), instance=self.rules.instance, recovered=recovered))
        return recovered

    async def _sweep_bucket(self, bucket: str) -> int:
        """Go through the overdue orders page by page, for as long as the lease is held."""
        start, end = agenda.overdue(self.transitions.clock() - self.rules.clock_tolerance)
        found = 0
        while self.leadership.held():
            page = await self.transitions.store.agenda(bucket, start, end, PAGE)
            found += sum(await run_all(self._recover(row.order_id) for row in page))
            if len(page) < PAGE:
                break
            start = page[-1].key + " "
        return found

    async def _recover(self, order_id: str) -> bool:
        """Ask for another try; against a reply, a claim or another supervisor exactly one wins (SUP-4).

        What is wrong with one order costs no other anything: it is logged at each sweep until somebody mends it.
        """
        try:
            await self.transitions.apply(order_id, self.rules.recover)
        except UnavailableError:
            raise
        except Exception:
            log.exception("supervisor.not_recovered", extra={"order_id": order_id})
            return False
        return True
