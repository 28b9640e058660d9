"""All roles on parts in memory, with a clock that the test holds."""

from dataclasses import replace

from testkit.memory import MemoryLeadership, MemoryLease, in_memory
from tests.support.apps import app
from tests.support.builders import NOW, ORDER_ID

MESSAGE = (
    f'{{"schemaVersion":1,"orderId":"{ORDER_ID}","placedAt":"2026-01-31T08:15:00Z",'
    '"customer":{"name":"Ada","email":"ada@example.com"},'
    '"items":[{"sku":"TEA-SENCHA","quantity":2,"unitPrice":"14.00"}],"workflow":"payment-only"%s}'
)

UNKNOWN_NAME_MAX_DELIVERIES = 4


class World:
    """One instance of each role; the clock stands still unless moved."""

    def __init__(self):
        self.now = NOW
        self.ids = iter(range(10**6))
        self.parts = in_memory(clock=lambda: self.now, new_id=lambda: f"c{next(self.ids)}")
        self.app = app(
            self.parts, unknown_name_max_deliveries=UNKNOWN_NAME_MAX_DELIVERIES, notice_tries=3
        )
        self.submission, self.scheduler, self.supervisor = (
            self.app.engine.submission,
            self.app.engine.scheduler,
            self.app.engine.supervisor,
        )
        self.store, self.poison_store, self.alert_log = (
            self.app.engine.store,
            self.app.engine.poison_store,
            self.app.operations.alert_log,
        )
        self.outbox, self.unit_of_work, self.terms = (
            self.app.operations.relay,
            self.app.engine.unit_of_work,
            self.app.engine.submission.terms,
        )

    def supervised_by(self, instance, lease=None):
        """Another instance of the supervisor."""
        leadership = MemoryLeadership(lease or MemoryLease(), instance, lambda: self.now)
        there = app(replace(self.parts, leadership=leadership), instance_id=instance)
        there.engine.store = there.operations.background_store = self.store
        return there.engine.supervisor

    async def order(self):
        return await self.store.load(ORDER_ID)

    async def submitted(self, extra="", workflow="payment-only"):
        await self.submission.record((MESSAGE % extra).replace("payment-only", workflow).encode())
        return await self.order()
