"""Compares the admission policies in virtual time: `python -m bench.policies`.

Scheduler, agent and supervisor are the shipped ones, on ports in memory. Only the service is simulated: it works on a
number of calls at a time, each call takes a fixed time, and further calls wait. Two hundred orders with one step are
submitted at the same moment. The table shows when the last of them had ended, how many attempts they took, and how
many failures were counted.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import cycle
from typing import Any

import click

from bootstrap.engine import build_engine
from bootstrap.operations import Operations
from engine.declarations.business import Application
from engine.domain.errors import CallTimeoutError, TransientError
from engine.domain.events import AttemptExpired
from engine.domain.messages import AgentRequest, BusMessage, Submission
from engine.ports import Clock
from engine.workflow import Agent, Model, Operation, Text, Workflow, application
from scheduler.admission.adaptive import AdaptiveLimit
from scheduler.admission.policy import AdmissionPolicy, FixedLimit
from testkit.environment import BEGINS
from testkit.world import AppWorld, settings_for

ORDERS = 200
LONGEST = timedelta(hours=1)
TICK = timedelta(seconds=1)


class Sale(Model):
    """The payload of an order."""

    item: Text


class Bank(Agent):
    """The only agent."""

    charge = Operation(Sale)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """The behaviour of the service. Times are in seconds since the orders were submitted."""

    name: str
    declared: int = 20
    """The declared number of concurrent calls."""
    at_a_time: int = 20
    """The real number of concurrent calls."""
    takes: float = 0.5
    slower_from: float = float("inf")
    """When calls begin to take four times as long."""
    timeout: float = 60
    """How long an attempt may take."""
    away_from: float = 0
    away_until: float = 0
    hangs: bool = False
    """Whether the service hangs while it is down, instead of answering 503."""
    dead_until: float = 0
    """No agent takes requests from the queue until this time."""
    processes: int = 1


SCENARIOS = (
    Scenario(name="the service works as declared"),
    Scenario(name="… with two processes", processes=2),
    Scenario(name="a call takes 8 s", takes=8),
    Scenario(name="a tenth of what is declared", declared=100, at_a_time=10, takes=1, timeout=15),
    Scenario(
        name="… with two processes",
        declared=100,
        at_a_time=10,
        takes=1,
        timeout=15,
        processes=2,
    ),
    Scenario(name="4 times slower after 3 s", slower_from=3, timeout=15),
    Scenario(name="… at half of what is declared", at_a_time=10, slower_from=5, timeout=8),
    Scenario(name="503 for a minute", away_until=60),
    Scenario(name="… with two processes", away_until=60, processes=2),
    Scenario(name="hangs for two minutes", away_until=120, hangs=True, timeout=30),
    Scenario(name="hangs from 3 s on", away_from=3, away_until=120, hangs=True, timeout=30),
    Scenario(name="no agent for two minutes", dead_until=120, timeout=30),
)
POLICIES: tuple[AdmissionPolicy, ...] = (FixedLimit(), AdaptiveLimit())


class Service:
    """`RemoteService` with a number of calls at a time. The others wait."""

    def __init__(self, scenario: Scenario, clock: Clock) -> None:
        self._scenario, self._clock = scenario, clock
        self._places = asyncio.Semaphore(scenario.at_a_time)

    async def call(self, request: AgentRequest, timeout_seconds: float) -> Mapping[str, Any]:
        del request
        try:
            async with asyncio.timeout(timeout_seconds):
                return await self._work()
        except TimeoutError:
            raise CallTimeoutError("no answer: TimeoutError") from None

    async def _work(self) -> Mapping[str, Any]:
        scenario = self._scenario
        if scenario.away_from <= self._elapsed() < scenario.away_until:
            if not scenario.hangs:
                raise TransientError("503")
            await asyncio.sleep(LONGEST.total_seconds())
        async with self._places:
            is_slow = self._elapsed() >= scenario.slower_from
            await asyncio.sleep(scenario.takes * (4 if is_slow else 1))
        return {}

    def _elapsed(self) -> float:
        return (self._clock() - BEGINS).total_seconds()


class Processes(AppWorld):
    """Processes of the app that share the stores and take messages alternately."""

    def __init__(self, scenario: Scenario, policy: AdmissionPolicy) -> None:
        self._scenario, self._policy = scenario, policy
        super().__init__(business(scenario), BEGINS, {"step_timeout_seconds": scenario.timeout})

    def _install(self, business: Application) -> None:
        parts = replace(self._parts, services={"bank": Service(self._scenario, self.loop.now)})
        engines = [
            build_engine(
                settings_for(business, {**self._settings, "instance_id": f"process-{number}"}),
                business,
                parts,
                self._policy,
            )
            for number in range(self._scenario.processes)
        ]
        self._engines = cycle(engines)
        self._agents = cycle([{"bank": made.agent(made.agents[0])} for made in engines])
        self.engine, self.agents = next(self._engines), next(self._agents)
        self.operations = Operations(self.engine)
        self._receivers = dict(self._receivers_of_all())

    async def _wake(self, message: BusMessage) -> None:
        self.engine = next(self._engines)
        await super()._wake(message)

    async def _reply(self, agent: str, message: BusMessage) -> None:
        self.engine = next(self._engines)
        await super()._reply(agent, message)

    async def _ask(self, agent: str, message: BusMessage) -> None:
        alive_at = BEGINS + timedelta(seconds=self._scenario.dead_until)
        await asyncio.sleep(max(0.0, (alive_at - self.loop.now()).total_seconds()))
        self.agents = next(self._agents)
        await super()._ask(agent, message)


def business(scenario: Scenario) -> Application:
    """Return a business with one step."""
    bank = Bank("bank", calls_in_flight=scenario.declared)
    workflow = Workflow("sale", Sale)

    @workflow.step(bank.charge)
    def charge(sale: Sale) -> Sale:
        return sale

    return application(workflow, agents=[bank])


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The results for the orders."""

    seconds: float
    """When the last order had ended, or `LONGEST`."""
    attempts: int
    failures: int
    """How many attempts counted as failures."""


def measure(scenario: Scenario, policy: AdmissionPolicy, count: int = ORDERS) -> Measured:
    """Run the orders through the scenario with one policy."""
    world = Processes(scenario, policy)
    order_ids = [f"b{number % 8:02d}-{number:026d}" for number in range(count)]
    for order_id in order_ids:
        world.run(world.engine.submission.record(_submission(order_id, world.loop.now())))
    while True:
        world.advance(TICK)
        loaded = [world.run(world.engine.store.load(order_id)) for order_id in order_ids]
        orders = [order for order in loaded if order]
        took = world.loop.now() - BEGINS
        if all(order.has_ended for order in orders) or took >= LONGEST:
            break
    measured = Measured(
        seconds=took.total_seconds(),
        attempts=sum(step.counts.attempts for order in orders for step in order.steps),
        failures=sum(world.run(_charged(world, order_id)) for order_id in order_ids),
    )
    world.end()
    return measured


async def _charged(world: AppWorld, order_id: str) -> int:
    """Return how many failures the history of the order counts."""
    events = [
        event for entry in await world.engine.store.history(order_id) for event in entry.events
    ]
    return sum(isinstance(event, AttemptExpired) and event.failure is not None for event in events)


def _submission(order_id: str, now: datetime) -> bytes:
    message = {"item": "tea", "schemaVersion": 1, "orderId": order_id, "placedAt": now}
    return Submission.model_validate(message).to_json().encode()


@click.command(help=__doc__)
def main() -> None:
    for scenario in SCENARIOS:
        for policy in POLICIES:
            row = measure(scenario, policy)
            click.echo(
                f"{scenario.name:32}{type(policy).__name__:16}{row.seconds:6.0f} s"
                f"{row.attempts:8} attempts{row.failures:5} failures"
            )


if __name__ == "__main__":
    main()
