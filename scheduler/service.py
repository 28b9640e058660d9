"""Runs the scheduler's rules: on a wake-up, on a reply, and by polling."""

import logging
from dataclasses import dataclass
from datetime import timedelta

from core import agenda, keys
from core.changes import Note
from core.errors import UnknownOrderError
from core.gathering import run_all
from core.messages import AgentReply, Correlation
from core.orders import Priority, Snapshot
from core.ports import Clock, StateStore
from core.transitions import Transitions
from scheduler.rules import SchedulerRules

log = logging.getLogger(__name__)

WAKE_UP_TIME = timedelta(seconds=2)
"""Time for a wake-up to arrive: a poll that competed with it would only cause conflicts."""

MOST_PER_POLL = 100
"""Orders that one poll takes from one bucket: the next poll goes on with the rest."""


@dataclass(frozen=True, kw_only=True)
class SchedulerService:
    """Claims orders and records what the agents answer. Any number of instances may run at once."""

    transitions: Transitions
    store: StateStore
    clock: Clock
    rules: SchedulerRules
    buckets: int

    async def wake(self, order_id: str, carried: Snapshot | None = None) -> None:
        """Look at one order and claim it if it is to be had; if not, somebody else did, and that is fine (SCH-2)."""
        try:
            await self.transitions.apply(order_id, self.rules.claim, carried)
        except UnknownOrderError:
            log.warning("scheduler.wake_up_for_unknown_order", extra={"order_id": order_id})

    async def receive(self, correlation: Correlation, reply: AgentReply, carried: Snapshot | None = None) -> None:
        """Record an agent's reply and go on with the order (SCH-5, SCH-6)."""
        try:
            decision = await self.transitions.apply(
                correlation.order_id, lambda order, now: self.rules.receive(order, correlation, reply, now), carried
            )
        except UnknownOrderError:
            log.warning("scheduler.reply_for_unknown_order", extra={"order_id": correlation.order_id})
            return
        if isinstance(decision, Note):
            log.warning("scheduler.reply_refused", extra={"order_id": decision.order_id, "why": decision.entry.detail})

    async def poll(self) -> int:
        """Claim what no wake-up announced, high priority first (SCH-1, SCH-11); return how many orders were due."""
        due = 0
        for priority in Priority:
            start, end = agenda.claimable(priority, self.clock() - WAKE_UP_TIME)
            pages = await run_all(
                self.store.agenda(bucket, start, end, MOST_PER_POLL) for bucket in keys.buckets(self.buckets)
            )
            orders = [row.order_id for page in pages for row in page]
            await run_all(self.wake(order_id) for order_id in orders)
            due += len(orders)
        return due
