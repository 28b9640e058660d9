"""Makes the simulated services of a demonstration."""

import asyncio
import random

from bootstrap.engine import Engine
from engine.azure.clock import order_ids
from samples.simulator.ledger import Ledger
from samples.simulator.rules import simulated
from samples.simulator.samples import sample_order, simulated_agents
from samples.simulator.service import SampleService, Simulator


class Demonstration:
    """Simulated services for the agents, and sample orders."""

    def __init__(self, engine: Engine) -> None:
        adapters, called = engine.adapters, simulated_agents(engine.settings.addresses)
        self.simulator = Simulator(
            services=simulated(engine.business),
            called=called,
            ledger=Ledger(adapters.table("simulator")),
            clock=adapters.clock,
            sleep=asyncio.sleep,
            chance=random.random,
        )
        self.samples = SampleService(
            simulator=self.simulator,
            order=sample_order(engine.business, engine.agents, called),
            submissions=engine.submissions,
            clock=adapters.clock,
            new_order_id=order_ids(engine.settings.buckets),
        )
