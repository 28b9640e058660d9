"""A host of the simulated services at a time that the tests set."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime

from builders import NOW, seconds

from shop.business import SHOP
from simulator.ledger import Ledger
from simulator.rules import Call, Fault, simulated
from simulator.service import FAULT_CACHE_SECONDS, Answer, Simulator


@dataclass
class World:
    """A host of the simulated services, its clock, and the dice; to sleep is to move the clock."""

    ledger: Ledger
    now: datetime = NOW
    chance: float = 0.0
    slept: list[float] = field(default_factory=list)

    def __post_init__(self):
        self.host = self.another_host()

    def another_host(self) -> Simulator:
        return Simulator(
            services=simulated(SHOP),
            ledger=self.ledger,
            clock=lambda: self.now,
            sleep=self.sleep,
            chance=lambda: self.chance,
        )

    async def sleep(self, delay: float) -> None:
        self.slept.append(delay)
        self.now += seconds(delay)
        await asyncio.sleep(0)

    async def call(self, action="authorise", key="o1:payment", service="payment", skus=("TEA",)) -> Answer:
        order = {"items": [{"sku": sku} for sku in skus]}
        call = Call.model_validate({"orderId": key.partition(":")[0], "step": "payment", "order": order})
        return await self.host.call(service, action, key, call)

    async def fault(self, mode, service="payment", **more):
        return (await self.host.set_fault(service, Fault.model_validate({"mode": mode} | more)))["faults"]

    async def effects(self, order_id=None, service="payment") -> tuple[int, list[str]]:
        report = await self.host.report(service, order_id)
        return report["calls"], [effect["action"] for effect in report["effects"]]

    def let_caches_lapse(self) -> None:
        self.now += seconds(FAULT_CACHE_SECONDS)
