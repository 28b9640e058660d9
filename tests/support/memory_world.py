"""All roles on parts in memory, with a clock that the test holds."""

from dataclasses import replace

from builders import ALLOWANCE, NOW, ORDER_ID, REST, THRESHOLD, scheduler, supervisor

import workflows
from adapters.memory import MemoryLeadership, MemoryLease, in_memory
from alerts.relay import Relay
from core.transitions import Transitions
from scheduler.admission import Admission
from scheduler.service import SchedulerService
from submission.rules import Terms
from submission.service import SubmissionService
from supervisor.service import SupervisorService
from workflows.catalogue import BY_SKU

MESSAGE = (
    f'{{"schemaVersion":1,"orderId":"{ORDER_ID}","placedAt":"2026-01-31T08:15:00Z",'
    '"customer":{"name":"Ada","email":"ada@example.com"},'
    '"items":[{"sku":"TEA-SENCHA","quantity":2,"unitPrice":"14.00"}],"workflow":"payment-only"%s}'
)

UNKNOWN_NAME_TRIES = 4


class World:
    """One instance of each role; the clock stands still unless moved."""

    def __init__(self):
        self.now = NOW
        self.ids = iter(range(10**6))
        self.parts = in_memory(clock=lambda: self.now, new_id=lambda: f"c{next(self.ids)}")
        self.transitions = Transitions(self.parts.store, self.parts.bus, self.parts.clock, self.parts.new_id)
        self.terms = Terms(
            workflows=workflows.ALL,
            skus=frozenset(BY_SKU),
            reply_to_prefix="status-",
            buckets=frozenset({"b03"}),
            allowance=ALLOWANCE,
            threshold=THRESHOLD,
            rest=REST,
        )
        self.submission = SubmissionService(
            transitions=self.transitions,
            store=self.parts.store,
            poison=self.parts.poison,
            clock=self.parts.clock,
            terms=self.terms,
            instance="i1",
            unknown_name_tries=UNKNOWN_NAME_TRIES,
        )
        offers = {capability: (capability,) for capability in ("payment", "inventory", "shipping")}
        self.scheduler = SchedulerService(
            transitions=self.transitions,
            store=self.parts.store,
            clock=self.parts.clock,
            rules=scheduler,
            admission=Admission(offers=offers, clock=self.parts.clock, most=100),
            measures=self.parts.measures,
            buckets=8,
        )
        self.supervisor = self.supervised_by("v1")
        self.outbox = Relay(
            store=self.parts.store,
            publisher=self.parts.events,
            bus=self.parts.bus,
            clock=self.parts.clock,
            buckets=8,
            most_tries=3,
        )

    def supervised_by(self, instance, lease=None):
        return SupervisorService(
            transitions=self.transitions,
            store=self.parts.store,
            leadership=MemoryLeadership(lease or MemoryLease(), instance, lambda: self.now),
            sweeps=self.parts.sweeps,
            clock=self.parts.clock,
            rules=replace(supervisor, instance=instance),
            buckets=8,
        )

    async def order(self):
        return await self.parts.store.load(ORDER_ID)

    async def submitted(self, extra="", workflow="payment-only"):
        await self.submission.record((MESSAGE % extra).replace("payment-only", workflow).encode())
        return await self.order()
