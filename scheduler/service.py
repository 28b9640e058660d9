"""Runs the scheduler's rules: on a wake-up, on a reply, and by polling."""

import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any
from zlib import crc32

from core import agenda
from core.agenda import NOTHING, AgendaRow
from core.changes import Change, Decision, Note
from core.errors import AppError, UnavailableError, UnknownOrderError
from core.gathering import run_all
from core.messages import AgentReply, WakeUp
from core.orders import Snapshot, Step
from scheduler.admission import Admission, Candidate
from scheduler.rules import SchedulerRules
from stores.agent_health import AgentHealthLog
from stores.claim_lanes import first_of_each_claim_lane
from stores.transitions import Transitions

log = logging.getLogger(__name__)

WAKE_UP_TIME = timedelta(seconds=2)
"""Time for a wake-up to arrive: a poll that competed with it would only cause conflicts.

Not longer: in a burst, orders that find no room at first are left to polls where each function has its own process.
"""

FRESH = timedelta(seconds=3)
"""How long what an agent said of itself is believed."""

AT_ONCE = 64
"""Orders that are being claimed at a time."""


@dataclass(frozen=True, kw_only=True)
class SchedulerService:
    """Claims orders and records what the agents answer. Any number of instances may run at once."""

    transitions: Transitions
    rules: SchedulerRules
    admission: Admission
    agent_health: AgentHealthLog

    async def wake(self, wake_up: WakeUp) -> None:
        """Look at one order and claim it if it is to be had; if not, somebody else did, and that is fine (SCH-2)."""
        self.admission.hear(self._woken(wake_up.order_id, self.transitions.remembered.look(wake_up.order_id)))
        await self._claim_what_fits()

    async def receive(self, reply: AgentReply, agent: str) -> None:
        """Record a reply that came over this agent's queue and go on with the order (SCH-5, SCH-6).

        And with the orders that waited for its slot.
        """
        await _beside_a_reply(self._look())
        order_id = reply.order_id
        decide = partial(self._received, reply, agent)
        try:
            with self.admission.at_work(order_id):
                decision = await self.transitions.apply(order_id, decide)
        except UnknownOrderError:
            log.warning("scheduler.reply_for_unknown_order", extra={"order_id": order_id})
            return
        if isinstance(decision, Note):
            log.warning("scheduler.reply_refused", extra={"order_id": decision.order_id, "why": decision.entry.detail})
        else:
            await _beside_a_reply(self._claim_what_fits())

    def _received(self, reply: AgentReply, agent: str, order: Snapshot, now: datetime) -> Decision:
        step = order.step(reply.step)
        if reply.circuit_open and step and (step.agent, step.attempts) == (agent, reply.attempt):
            self.admission.close(agent, now + timedelta(seconds=reply.retry_after or 0))
        self.admission.is_at(order.order_id, _agents(order, but=step))  # what comes next may take its slot
        decision = self.rules.receive(order, reply, now, self.admission.room(), agent)
        after = decision.after if isinstance(decision, Change) else order
        self.admission.is_at(order.order_id, _agents(after))
        return decision

    async def poll(self) -> bool:
        """Claim what no wake-up announced (SCH-1); return whether to come again soon.

        Somebody has to while orders wait: a reply claims others only where both reach the same instance (WRK-3).
        """
        began = self.transitions.clock()
        pages = await self.transitions.store.of_each_bucket(self._waiting)
        found = [candidate for bucket in self._own_order() for candidate in pages.get(bucket, ())]
        self.admission.found(found, began)
        await self._claim_what_fits()
        return any(map(self.admission.is_any_at_work, {candidate.needs for candidate in found}))

    async def _waiting(self, bucket: str) -> list[Candidate]:
        """Return the first orders of each lane of the bucket that this app can claim."""
        now = self.transitions.clock()
        return await first_of_each_claim_lane(self.transitions.store, bucket, now, partial(self._candidate, now))

    def _candidate(self, now: datetime, row: AgendaRow) -> Candidate | None:
        """Return the order if it is to be claimed; a row that cannot be read is passed over."""
        if self.admission.passes_over(row.order_id):
            return None
        try:
            if not self._is_wanted(row, now):
                return None
            priority, needs = agenda.lane_of(row)
            since: datetime = row.data["NotBefore"]
        except (LookupError, TypeError, ValueError, OverflowError):
            about = {"order_id": row.order_id, "row": row.key, "why": row.fault}
            log.exception("scheduler.row_passed_over", extra=about)
            self.admission.pass_over(row.order_id)
            return None
        return Candidate(order_id=row.order_id, priority=priority, needs=needs, since=since, heard_at=now)

    def _is_wanted(self, row: AgendaRow, now: datetime) -> bool:
        """Whether its time has come, and this app goes on with it, or leaves it to a newer one (FLT-12).

        An order that was announced only lately is left to whoever hears of it.
        """
        waited = now - row.data["NotBefore"]
        known = self.admission.knows(row.order_id) and waited >= timedelta()
        due = known or agenda.is_due(row, now, WAKE_UP_TIME)
        return due and self.rules.can_claim(row.data["Workflow"], row.data["WorkflowVersion"], waited)

    def _woken(self, order_id: str, order: Snapshot | None) -> Candidate:
        now = self.transitions.clock()
        if order is None:
            return Candidate(order_id=order_id, since=now, heard_at=now)
        state, needs = order.state, order.needs() or NOTHING
        return Candidate(order_id=order_id, priority=state.priority, needs=needs, since=state.not_before, heard_at=now)

    async def _claim_what_fits(self) -> None:
        """Claim those that wait for as long as agents have room for them, and requests would reach them.

        Those of which the store says nothing are left to whoever comes next; raises `UnavailableError` if all are.
        """
        if self.admission.anyone_waits:
            await self._look()
        tried, silent = 0, list[Candidate]()
        while await self._reaches_agents() and (fitting := list(islice(iter(self.admission.take, None), AT_ONCE))):
            answered = await run_all(map(self._claim, fitting))
            tried += len(fitting)
            silent += [each for each, was in zip(fitting, answered, strict=True) if not was]
            if not any(answered):
                break
        for candidate in silent:
            self.admission.hear(candidate)
        if silent and len(silent) == tried:
            raise UnavailableError

    async def _reaches_agents(self) -> bool:
        """Whether there is any order to claim, and its request would go out."""
        return self.admission.anyone_waits and await self.transitions.reach.is_there()

    async def _claim(self, candidate: Candidate) -> bool:
        """Claim one order; what is wrong with it costs no other anything. Return whether the store answered."""
        order_id = candidate.order_id
        try:
            with self.admission.at_work(order_id):
                await self.transitions.apply(order_id, self._claimed)
        except UnknownOrderError:
            log.warning("scheduler.wake_up_for_unknown_order", extra={"order_id": order_id})
            self.admission.pass_over(order_id)
        except UnavailableError as away:
            log.warning("scheduler.not_claimed", extra={"order_id": order_id, "why": str(away)})
            return False
        except Exception:
            log.exception("scheduler.claim_failed", extra={"order_id": order_id})
            self.admission.pass_over(order_id)
        return True

    def _claimed(self, order: Snapshot, now: datetime) -> Change | None:
        """Decide about the claim; an order for which no agent has room waits among those with its need."""
        self.admission.is_at(order.order_id, _agents(order))  # the slot that it has taken is its own to use
        room, needs = self.admission.room(), order.needs()
        change = self.rules.claim(order, now, room)
        self.admission.is_at(order.order_id, _agents(change.after if change else order))
        if change is None and needs and needs not in room and self.rules.waits(order, now):
            self.admission.hear(self._woken(order.order_id, order))
        return change

    async def _look(self) -> None:
        """See what is open in the whole system, and how the agents are doing, once in a while."""
        if not self.admission.begin_look():
            return
        pages = await self.transitions.store.of_each_bucket(self._running)
        agent_health = await self.agent_health.since(self.transitions.clock() - FRESH)
        unseen = set(self.transitions.store.buckets) - pages.keys()
        self.admission.saw([row for page in pages.values() for row in page], agent_health, unseen)

    async def _running(self, bucket: str) -> list[AgendaRow]:
        """Return what runs; no agent works any more on what is overdue, even if nobody can recover it."""
        running = agenda.in_time(self.transitions.clock() - self.rules.clock_tolerance)
        return await self.transitions.store.agenda(bucket, *running, self.admission.max_open)

    def _own_order(self) -> list[str]:
        """Return the buckets, from another one on for each instance: side by side, they take different orders."""
        buckets = self.transitions.store.buckets
        first = crc32(self.rules.instance.encode()) % len(buckets)
        return [*buckets[first:], *buckets[:first]]


async def _beside_a_reply(work: Coroutine[Any, Any, None]) -> None:
    """Do what is no fault of the reply if it fails, and must not bring it back. The poll makes up for it."""
    try:
        await work
    except* AppError as failures:
        log.warning("scheduler.claims_failed", extra={"why": str(failures.exceptions[0])})


def _agents(order: Snapshot, but: Step | None = None) -> list[str]:
    """Return the agents at which steps of the order run."""
    return [step.agent for step in order.running() if step is not but]
