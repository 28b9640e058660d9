"""Runs the scheduler's rules: on a wake-up, on a reply, and by polling."""

import logging
from dataclasses import dataclass
from datetime import timedelta
from zlib import crc32

from core import agenda, keys
from core.agenda import Kind
from core.carried import unpack
from core.changes import Change, Decision, Note
from core.errors import UnknownOrderError
from core.gathering import run_all
from core.measures import longest_wait
from core.messages import AgentReply, Correlation, WakeUp
from core.orders import Priority, ProcessState, Snapshot
from core.ports import AgentMeasures, Clock, StateStore
from core.transitions import Transitions
from scheduler.rules import SchedulerRules
from scheduler.window import Window

log = logging.getLogger(__name__)

PATIENCE = timedelta(seconds=5)
"""How long a wake-up waits for room; the poll finds the order that it leaves behind."""

WAKE_UP_TIME = PATIENCE
"""Time for a wake-up to arrive: a poll that competed with it would only cause conflicts."""

FRESH = timedelta(seconds=3)
"""How long what an agent said of itself is believed."""

MOST_PER_QUERY = 1000


@dataclass(frozen=True, kw_only=True)
class SchedulerService:
    """Claims orders and records what the agents answer. Any number of instances may run at once."""

    transitions: Transitions
    store: StateStore
    clock: Clock
    rules: SchedulerRules
    window: Window
    measures: AgentMeasures
    buckets: int

    async def wake(self, wake_up: WakeUp) -> None:
        """Look at one order and claim it if it is to be had; if not, somebody else did, and that is fine (SCH-2)."""
        if not self.window.room:
            await self._look_around()
        if await self.window.enter(wake_up.order_id, PATIENCE):
            await self._claim(wake_up.order_id, unpack(wake_up.carried))

    async def _claim(self, order_id: str, carried: Snapshot | None = None) -> None:
        decision: Decision = None
        try:
            decision = await self.transitions.apply(order_id, self.rules.claim, carried)
        except UnknownOrderError:
            log.warning("scheduler.wake_up_for_unknown_order", extra={"order_id": order_id})
        finally:
            if not _goes_on(decision):
                self.window.leave(order_id)

    async def receive(self, correlation: Correlation, reply: AgentReply) -> None:
        """Record an agent's reply and go on with the order (SCH-5, SCH-6)."""
        try:
            decision = await self.transitions.apply(
                correlation.order_id,
                lambda order, now: self.rules.receive(order, correlation, reply, now),
                unpack(reply.carried),
            )
        except UnknownOrderError:
            log.warning("scheduler.reply_for_unknown_order", extra={"order_id": correlation.order_id})
            return
        if isinstance(decision, Note):
            log.warning("scheduler.reply_refused", extra={"order_id": decision.order_id, "why": decision.entry.detail})
        elif not _goes_on(decision):
            self.window.leave(correlation.order_id)

    async def poll(self) -> int:
        """Claim what no wake-up announced, high priority first (SCH-1, SCH-11); return how many orders were taken."""
        await self._look_around()
        taken = 0
        for priority in Priority:
            start, end = agenda.claimable(priority, self.clock() - WAKE_UP_TIME)
            for bucket in self._own_order():
                if not (room := self.window.room):
                    return taken
                rows = await self.store.agenda(bucket, start, end, room)
                await run_all(self._take(row.order_id) for row in rows)
                taken += len(rows)
        return taken

    async def _look_around(self) -> None:
        """See how the agents are doing, and give up the places of orders that went on elsewhere.

        Replies reach any instance, and so may the end of an order that was claimed here.
        """
        if not self.window.look_is_due():
            return
        now = self.clock()
        start, end = agenda.all_of(Kind.RUNNING)
        pages = await run_all(self.store.agenda(bucket, start, end, MOST_PER_QUERY) for bucket in self._own_order())
        self.window.keep_only({row.order_id for page in pages for row in page}, now)
        self.window.adapt(longest_wait(await self.measures.since(now - FRESH)))

    async def _take(self, order_id: str) -> None:
        if await self.window.enter(order_id):
            await self._claim(order_id)

    def _own_order(self) -> list[str]:
        """Return the buckets, from another one on for each instance: side by side, they take different orders."""
        buckets = keys.buckets(self.buckets)
        first = crc32(self.rules.instance.encode()) % len(buckets)
        return [*buckets[first:], *buckets[:first]]


def _goes_on(decision: Decision) -> bool:
    """Whether the order is in progress after what was decided."""
    return isinstance(decision, Change) and decision.after.state.process_state is ProcessState.PROCESSING
