"""Runs the scheduler's rules: on a wake-up, on a reply, and by polling."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from zlib import crc32

from core import agenda, keys
from core.agenda import NOTHING, AgendaRow, Kind
from core.changes import Change, Decision, Note
from core.errors import AppError, UnavailableError, UnknownOrderError
from core.gathering import run_all
from core.lanes import PAGE, first_of_each_lane
from core.messages import AgentReply, WakeUp
from core.orders import Priority, ProcessState, Snapshot
from core.ports import AgentMeasures, Clock, StateStore
from core.transitions import Transitions
from scheduler.backlog import Backlog, Waiting
from scheduler.places import Places
from scheduler.progress import Route
from scheduler.rules import SchedulerRules

log = logging.getLogger(__name__)

WAKE_UP_TIME = timedelta(seconds=5)
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
    places: Places
    measures: AgentMeasures
    buckets: int
    backlog: Backlog = field(default_factory=Backlog)
    being_claimed: set[str] = field(default_factory=set)
    """Orders that have a place, and may not be running in the store yet."""

    async def wake(self, wake_up: WakeUp) -> None:
        """Look at one order and claim it if it is to be had; if not, somebody else did, and that is fine (SCH-2)."""
        self.backlog.put(_waiting(wake_up.order_id, self.transitions.last_known(wake_up.order_id)))
        await self._claim_what_fits()

    async def receive(self, reply: AgentReply, agent: str) -> None:
        """Record a reply that came over this agent's queue and go on with the order (SCH-5, SCH-6).

        And with the orders that waited for its place.
        """
        order_id = reply.order_id
        decide = partial(self._received, reply, agent)
        try:
            decision = await self.transitions.apply(order_id, decide)
        except UnknownOrderError:
            log.warning("scheduler.reply_for_unknown_order", extra={"order_id": order_id})
            return
        if isinstance(decision, Note):
            log.warning("scheduler.reply_refused", extra={"order_id": decision.order_id, "why": decision.entry.detail})
        elif self.places.release_all_but(order_id, _running(decision)):
            await self._claim_others()

    async def _claim_others(self) -> None:
        """Claim what waited for the place that a reply freed.

        The reply is recorded: what fails from here on is not its fault, and must not bring it back. The poll finds it.
        """
        try:
            await self._claim_what_fits()
        except* AppError as failures:
            log.warning("scheduler.claims_failed", extra={"why": str(failures.exceptions[0])})

    def _received(self, reply: AgentReply, agent: str, order: Snapshot, now: datetime) -> Decision:
        step = order.step(reply.step)
        if reply.circuit_open and step and (step.agent, step.attempts) == (agent, reply.attempt):
            self.places.avoid(agent, now + timedelta(seconds=reply.retry_after or 0))
        return self.rules.receive(order, reply, now, partial(self.places.take, order.order_id), agent)

    async def poll(self) -> int:
        """Claim what no wake-up announced (SCH-1); return how many orders were found."""
        await self._look_around()
        found = 0
        for bucket in self._own_order():
            for row in await self._pending(bucket):
                priority, needs = agenda.lane_of(row)
                self.backlog.put(Waiting(order_id=row.order_id, priority=priority, needs=needs))
                found += 1
        await self._claim_what_fits()
        return found

    async def go_on(self) -> bool:
        """Claim what is known, and look for more once little of that is left; return whether to come again soon.

        Somebody has to while orders wait: a reply claims others only where both reach the same instance (WRK-3).
        """
        if len(self.backlog) >= PAGE:
            await self._claim_what_fits()
        elif not await self.poll():
            return False
        return len(self.backlog) < PAGE or any(map(self.places.is_any_at_work, self.backlog.needs()))

    async def _pending(self, bucket: str) -> list[AgendaRow]:
        """Return orders of the bucket that are due: the first of each lane, however many wait in the others."""
        now = self.clock()
        rows = await first_of_each_lane(self.store, bucket)
        return [row for row in rows if agenda.is_due(row, now, WAKE_UP_TIME)]

    async def _claim_what_fits(self) -> None:
        """Claim orders of the backlog for as long as agents have room for them, and requests would reach them."""
        if any(self.backlog.needs()):
            await self._look_around()
        while len(self.backlog) and await self.transitions.reach.is_there() and (fitting := list(self._fitting())):
            await run_all(self._claim(waiting, held) for waiting, held in fitting)

    def _fitting(self) -> Iterator[tuple[Waiting, frozenset[str]]]:
        """Take orders out, each with a place for what it needs; beside it the places that it had already."""
        for needs in list(self.backlog.needs()):
            while self.places.has_room(needs) and (waiting := self.backlog.take(needs)):
                held = self.places.held(waiting.order_id)
                self.being_claimed.add(waiting.order_id)
                if needs != NOTHING:
                    self.places.take(waiting.order_id, needs)
                yield waiting, held

    async def _claim(self, waiting: Waiting, held: frozenset[str]) -> None:
        route = partial(self.places.take, waiting.order_id)
        decision: Decision = None
        try:
            decision = await self.transitions.apply(waiting.order_id, partial(self._claimed, route))
        except UnknownOrderError:
            log.warning("scheduler.wake_up_for_unknown_order", extra={"order_id": waiting.order_id})
        except UnavailableError:
            self.backlog.put(waiting)
            raise
        except Exception:  # it is this order's own, and must not end the claims of others; the poll comes to it again
            log.exception("scheduler.claim_failed", extra={"order_id": waiting.order_id})
        finally:
            self.being_claimed.discard(waiting.order_id)
            self.places.release_all_but(waiting.order_id, _running(decision) if decision else held)

    def _claimed(self, route: Route, order: Snapshot, now: datetime) -> Decision:
        """Decide about the claim; an order for which no agent has room waits where room for it is looked for."""
        claim = self.rules.claim(order, now, route)
        waiting = _waiting(order.order_id, order)
        pending = order.state.process_state is ProcessState.PENDING and order.state.not_before <= now
        if claim is None and pending and not self.places.has_room(waiting.needs):
            self.backlog.put(waiting)
        return claim

    async def _look_around(self) -> None:
        """See how the agents are doing, and give up the places of orders that went on elsewhere.

        Replies reach any instance, and so may the end of an order that was claimed here.
        """
        if not self.places.look_is_due():
            return
        now = self.clock()
        if self.places.any_taken:
            await self._give_up_places(now)
        self.places.heed(await self.measures.since(now - FRESH), now)

    async def _give_up_places(self, now: datetime) -> None:
        going_on = set(self.being_claimed)
        pages = await run_all(
            self.store.agenda(bucket, *agenda.all_of(Kind.RUNNING), MOST_PER_QUERY) for bucket in self._own_order()
        )
        going_on.update(row.order_id for page in pages for row in page)
        if all(len(page) < MOST_PER_QUERY for page in pages):  # else the last ones to begin would seem to have ended
            self.places.keep_only(going_on, now)

    def _own_order(self) -> list[str]:
        """Return the buckets, from another one on for each instance: side by side, they take different orders."""
        buckets = keys.buckets(self.buckets)
        first = crc32(self.rules.instance.encode()) % len(buckets)
        return [*buckets[first:], *buckets[:first]]


def _waiting(order_id: str, known: Snapshot | None) -> Waiting:
    if known is None:
        return Waiting(order_id=order_id, priority=Priority.NORMAL)
    return Waiting(order_id=order_id, priority=known.state.priority, needs=known.needs() or NOTHING)


def _running(decision: Decision) -> frozenset[str]:
    """Return what the order's running steps need after what was decided."""
    return (
        frozenset(step.capability for step in decision.after.running()) if isinstance(decision, Change) else frozenset()
    )
