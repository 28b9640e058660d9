"""A host of the simulated services at a time that the tests set."""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import datetime

from engine.declarations.business import Application
from samples.simulator.ledger import Ledger
from samples.simulator.rules import SimulatedCall, SimulatedFault, simulated
from samples.simulator.samples import sample_order
from samples.simulator.service import FAULT_CACHE_SECONDS, SampleService, SimulatedAnswer, Simulator
from shop.business import SHOP
from testkit.memory import MemoryTextQueue
from tests.support.builders import NOW, ORDER_ID, seconds

EVERY_SERVICE = tuple(agent.name for agent in SHOP.agents)


@dataclass
class World:
    """A host of the simulated services, its clock, and the dice; to sleep is to move the clock."""

    ledger: Ledger
    now: datetime = NOW
    chance: float = 0.0
    slept: list[float] = field(default_factory=list)
    submissions: MemoryTextQueue = field(default_factory=MemoryTextQueue)

    def __post_init__(self):
        self.host = self.another_host()

    def another_host(self) -> Simulator:
        return Simulator(
            services=simulated(SHOP),
            called=EVERY_SERVICE,
            ledger=self.ledger,
            clock=lambda: self.now,
            sleep=self.sleep,
            chance=lambda: self.chance,
        )

    def samples(self, business: Application = SHOP, called=EVERY_SERVICE) -> SampleService:
        """Place orders of a business, with those services for it that are simulated."""
        host = replace(self.host, services=simulated(business), called=called)
        return SampleService(
            simulator=host,
            order=sample_order(business, business.agents, called),
            submissions=self.submissions,
            clock=lambda: self.now,
            new_order_id=lambda: ORDER_ID,
        )

    async def sleep(self, delay: float) -> None:
        self.slept.append(delay)
        self.now += seconds(delay)
        await asyncio.sleep(0)

    async def call(
        self, action="authorise", key="o1:payment", service="payment", skus=("TEA",)
    ) -> SimulatedAnswer:
        order = {"items": [{"sku": sku} for sku in skus]}
        call = SimulatedCall.model_validate(
            {"orderId": key.partition(":")[0], "step": "payment", "order": order}
        )
        return await self.host.call(service, action, key, call)

    async def fault(self, mode, service="payment", **more):
        return (
            await self.host.set_fault(service, SimulatedFault.model_validate({"mode": mode} | more))
        )["faults"]

    async def effects(self, order_id=None, service="payment") -> tuple[int, list[str]]:
        report = await self.host.report(service, order_id)
        return report["calls"], [effect["action"] for effect in report["effects"]]

    def let_caches_lapse(self) -> None:
        self.now += seconds(FAULT_CACHE_SECONDS)
