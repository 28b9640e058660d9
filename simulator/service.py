"""The simulated services: they remember every effect, and fail as they are told."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from core.errors import RefusedError
from core.gathering import GroupCommit
from core.ports import Clock, TextQueue
from simulator import rules
from simulator.ledger import Ledger
from simulator.rules import Call, Effect, Fault, FaultInForce, Match, Service
from simulator.samples import SampleOrder, Trial

log = logging.getLogger(__name__)

FAULT_CACHE_SECONDS = 0.25
"""How long a host may go by the faults it has read: reading them for each call is too dear."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What the caller gets to hear."""

    status: int
    reason: str = ""
    """Why the status is not 200."""
    result: Mapping[str, Any] = field(default_factory=dict)


@dataclass(kw_only=True)
class Simulator:
    """All simulated services of this app."""

    services: Mapping[str, Service]
    """By agent."""
    called: Sequence[str]
    """The agents of this deployment that call their services here, and no real ones."""
    ledger: Ledger
    clock: Clock
    sleep: Callable[[float], Awaitable[None]]
    chance: Callable[[], float]
    _known: dict[str, tuple[datetime, Sequence[FaultInForce]]] = field(default_factory=dict)
    """By service: its faults, and when they began to be read: what was found was in force at no earlier time."""
    _readings: GroupCommit[None, None] = field(init=False)
    """Of all that want to know the faults at the same time one reads them."""

    def __post_init__(self) -> None:
        self._readings = GroupCommit(self._read)

    def knows(self, agent: str, action: str | None = None) -> bool:
        """Whether there is a service of this agent, and whether it does this."""
        service = self.services.get(agent)
        return service is not None and (action is None or action in service.actions)

    async def call(self, agent: str, action: str, key: str, call: Call) -> Answer:
        """Do what the action says, at most once for each key, unless a fault is in the way."""
        service = self.services[agent]
        await self.ledger.count_call(service.name, key, action)
        fault = rules.fault_for(service, await self._faults(agent), action, call)
        plan = rules.plan(service, fault, self.chance())
        if plan.effect_is_late:
            await self.sleep(plan.delay_seconds)
        stands = await self._happen(service, action, key, call) if plan.effect else None
        if plan.effect and stands is None:
            return Answer(status=410, reason="it was undone under this key, and is refused since")
        if not plan.effect_is_late:
            await self.sleep(plan.delay_seconds)
        return Answer(
            status=plan.status, reason=plan.reason, result=stands.result if stands else {}
        )

    async def _happen(self, service: Service, action: str, key: str, call: Call) -> Effect | None:
        effect = Effect(
            key=key,
            action=action,
            order_id=call.order_id,
            at=self.clock(),
            result=rules.result_of(service.name, action, key, call),
        )
        return await self.ledger.effect(service.name, effect, forbids=service.undoes.get(action))

    async def report(self, agent: str, order_id: str | None) -> Mapping[str, Any]:
        """Return the ledger of an agent's service: every effect that really happened, once."""
        calls, effects = await self.ledger.contents(self.services[agent].name, order_id)
        return {
            "calls": calls,
            "effects": [
                {"idempotencyKey": effect.key, "action": effect.action, "at": effect.at.isoformat()}
                for effect in effects
            ],
        }

    async def set_fault(self, service: str, fault: Fault) -> Mapping[str, Any]:
        """Put a fault in force; returns once every host goes by it. Raises `InvalidError`."""
        rules.check(self.services[service], fault)
        if fault.mode == "none":
            await self.ledger.clear_faults(service, None if fault.match == Match() else fault.key())
        else:
            until = (
                self.clock() + timedelta(seconds=fault.for_seconds) if fault.for_seconds else None
            )
            await self.ledger.set_fault(service, FaultInForce(**dict(fault), until=until))
        await self.sleep(FAULT_CACHE_SECONDS)
        return await self.faults(service)

    async def faults(self, service: str) -> Mapping[str, Any]:
        """Return what is in force."""
        return {
            "faults": [
                fault.model_dump(by_alias=True, exclude_none=True)
                for fault in await self._faults(service)
            ]
        }

    async def _faults(self, service: str) -> Sequence[FaultInForce]:
        """Return the faults in force, by what was read a moment ago if there is such a reading."""
        if not self._is_fresh(service):
            await self._readings.submit(service, None)
        return rules.in_force(self._known[service][1], self.clock())

    def _is_fresh(self, service: str) -> bool:
        """Whether a host may still go by what it has read."""
        began, _ = self._known.get(service, (None, ()))
        return (
            began is not None and 0 <= (self.clock() - began).total_seconds() < FAULT_CACHE_SECONDS
        )

    async def _read(self, service: str, waiting: Sequence[None]) -> Sequence[None]:
        """Read the faults, unless that was done while these waited."""
        if not self._is_fresh(service):
            began = self.clock()
            self._known[service] = (began, await self.ledger.faults(service))
        return waiting


@dataclass(frozen=True, kw_only=True)
class SampleService:
    """Shows operators what they can break, and places orders that meet it."""

    simulator: Simulator
    order: SampleOrder | None
    submissions: TextQueue
    clock: Clock
    new_order_id: Callable[[], str]

    async def overview(self) -> Mapping[str, Any]:
        """Return the services that are called, with their faults, and what a fault and an order may say."""
        services = [
            {"name": name, **await self.simulator.faults(name)} for name in self.simulator.called
        ]
        marks = {
            mark for name in self.simulator.called for mark in self.simulator.services[name].marks
        }
        sample = {"steps": [asdict(step) for step in self.order.steps]} if self.order else None
        return {"services": services, "marks": sorted(marks), "sample": sample}

    async def place(self, trial: Trial) -> str:
        """Place a sample order, perhaps one that will be refused a step; return its id.

        Raises `RefusedError` where there is no such order, and `InvalidError` if it has no such step.
        """
        if self.order is None:
            raise RefusedError(
                "the business has no sample order, or one of the services that it needs is a real one"
            )
        order_id = self.new_order_id()
        if trial.refuse is not None:
            step = self.order.step(trial.refuse)
            for name in step.services:
                await self.simulator.set_fault(name, step.refused(order_id))
        await self.submissions.put(self.order.submission(order_id, self.clock()).to_json())
        log.info("simulator.sample_placed", extra={"order_id": order_id})
        return order_id
