"""The simulated services. They record every effect, and fail according to the faults in force."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from engine.concurrency import GroupCommit
from engine.domain.causes import Cause, Code
from engine.domain.errors import RefusedError
from engine.ports import Clock, TextQueue
from samples.simulator import rules
from samples.simulator.ledger import Ledger
from samples.simulator.rules import (
    FaultInForce,
    Match,
    Plan,
    Refusal,
    SimulatedCall,
    SimulatedEffect,
    SimulatedFault,
    SimulatedService,
)
from samples.simulator.samples import SampleOrder, SampleRequest

log = logging.getLogger(__name__)

FAULT_CACHE_SECONDS = 0.25
"""How long a host caches the faults, in seconds. To read them for each call would cost too much."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulatedAnswer:
    """The answer to a call."""

    status: int
    reason: str = ""
    """Why the status is not 200."""
    result: Mapping[str, Any] = field(default_factory=dict)
    retry_after: timedelta | None = None
    """The pause that the answer requests before another call. None if it requests none."""


UNDONE = SimulatedAnswer(status=410, reason="it was undone under this key, so it is refused now")
OTHER_CONTENT = SimulatedAnswer(status=400, reason="the key was used before with different content")


@dataclass(kw_only=True)
class Simulator:
    """All simulated services of this app."""

    services: Mapping[str, SimulatedService]
    """The service of each agent."""
    called: Sequence[str]
    """The agents of this deployment that call simulated services."""
    ledger: Ledger
    clock: Clock
    sleep: Callable[[float], Awaitable[None]]
    chance: Callable[[], float]
    _known: dict[str, tuple[datetime, Sequence[FaultInForce]]] = field(default_factory=dict)
    """The faults of each service, with the time when their last reading began."""
    _readings: GroupCommit[None, None] = field(init=False)
    """Lets concurrent calls share one reading of the faults."""

    def __post_init__(self) -> None:
        self._readings = GroupCommit(self._read)

    def knows(self, agent: str) -> bool:
        return agent in self.services

    async def call(self, agent: str, action: str, key: str, call: SimulatedCall) -> SimulatedAnswer:
        """Carry out the action, at most once for each key, unless a fault prevents it."""
        service = self.services[agent]
        await self.ledger.count_call(service.name, key, action)
        fault = rules.fault_for(service, await self._faults(agent), action, call)
        tells_calls_apart = fault is not None and fault.mode == "unauthorized"
        calls = await self.ledger.calls_of(service.name, key) if tells_calls_apart else 1
        plan = rules.plan(service, fault, self.chance(), calls)
        if plan.keys_last:
            await self.ledger.forget(service.name, key, action, self.clock() - plan.keys_last)
        if plan.done_after and (left := await self._left(service, action, key, plan.done_after)):
            return SimulatedAnswer(status=202, reason="it is done later", retry_after=left)
        return await self._carry_out(plan, service, action, key, call)

    async def _left(
        self, service: SimulatedService, action: str, key: str, done_after: timedelta
    ) -> timedelta | None:
        """Return the time until the deferred action is done. None if it is done now."""
        now = self.clock()
        left = await self.ledger.accept(service.name, key, action, now) + done_after - now
        return left if left > timedelta() else None

    async def _carry_out(
        self, plan: Plan, service: SimulatedService, action: str, key: str, call: SimulatedCall
    ) -> SimulatedAnswer:
        """Carry out the plan of a call, unless its key already has another answer."""
        content = rules.content_of(service, call)
        if plan.is_remembered:
            refusal = Refusal(reason=plan.reason, at=self.clock(), content=content)
            await self.ledger.refuse(service.name, key, action, refusal)
        if plan.effect_is_late:
            await self.sleep(plan.delay_seconds)
        stands = await self._happen(service, action, key, call) if plan.effect else None
        if plan.effect and stands is None:
            return await self._refused(service, action, key, content)
        if not plan.effect_is_late:
            await self.sleep(plan.delay_seconds)
        if stands and stands.content not in ("", content):
            return OTHER_CONTENT
        result = stands.result if stands else {}
        reason = "" if plan.is_remembered else plan.reason
        return SimulatedAnswer(
            status=plan.status, reason=reason, result=result, retry_after=plan.retry_after
        )

    async def _refused(
        self, service: SimulatedService, action: str, key: str, content: str
    ) -> SimulatedAnswer:
        """Return the answer to a call whose key was refused or undone before."""
        refusal = await self.ledger.refusal(service.name, key, action)
        if refusal is None:
            return UNDONE
        if refusal.content != content:
            return OTHER_CONTENT
        return SimulatedAnswer(status=service.refuses_with, reason=refusal.reason)

    async def _happen(
        self, service: SimulatedService, action: str, key: str, call: SimulatedCall
    ) -> SimulatedEffect | None:
        effect = SimulatedEffect(
            key=key,
            action=action,
            order_id=call.order_id,
            at=self.clock(),
            result=rules.result_of(service, action, key, call),
            content=rules.content_of(service, call),
        )
        return await self.ledger.effect(service.name, effect, forbids=service.undoes.get(action))

    async def report(self, agent: str, order_id: str | None) -> Mapping[str, Any]:
        """Return the ledger of an agent's service: the number of calls, and every effect once."""
        calls, found = await self.ledger.contents(self.services[agent].name, order_id)
        effects = [
            {"idempotencyKey": effect.key, "action": effect.action, "at": effect.at.isoformat()}
            for effect in found
        ]
        return {"calls": calls, "effects": effects}

    async def set_fault(self, service: str, fault: SimulatedFault) -> Mapping[str, Any]:
        """Set a fault, and return when every host applies it. Raises `InvalidError`."""
        rules.check(self.services[service], fault)
        if fault.mode == "none":
            await self.ledger.clear_faults(service, None if fault.match == Match() else fault.key())
        else:
            lasts = timedelta(seconds=fault.for_seconds) if fault.for_seconds else None
            until = self.clock() + lasts if lasts else None
            await self.ledger.set_fault(service, FaultInForce(**dict(fault), until=until))
        await self.sleep(FAULT_CACHE_SECONDS)
        return await self.faults(service)

    async def faults(self, service: str) -> Mapping[str, Any]:
        found = await self._faults(service)
        return {"faults": [fault.model_dump(by_alias=True, exclude_none=True) for fault in found]}

    async def _faults(self, service: str) -> Sequence[FaultInForce]:
        """Return the faults in force, from a recent reading if there is one."""
        if not self._is_fresh(service):
            await self._readings.submit(service, None)
        return rules.in_force(self._known[service][1], self.clock())

    def _is_fresh(self, service: str) -> bool:
        began, _ = self._known.get(service, (None, ()))
        if began is None:
            return False
        return 0 <= (self.clock() - began).total_seconds() < FAULT_CACHE_SECONDS

    async def _read(self, service: str, waiting: Sequence[None]) -> Sequence[None]:
        """Read the faults, unless another call has just done so."""
        if not self._is_fresh(service):
            began = self.clock()
            self._known[service] = (began, await self.ledger.faults(service))
        return waiting


@dataclass(frozen=True, kw_only=True)
class SampleService:
    """Shows operators the simulated services and their faults, and places sample orders."""

    simulator: Simulator
    order: SampleOrder | None
    submissions: TextQueue
    clock: Clock
    new_order_id: Callable[[], str]

    async def overview(self) -> Mapping[str, Any]:
        """Return the called services with their faults, the marks, and the steps of the sample."""
        services: list[Mapping[str, Any]] = []
        marks: set[str] = set()
        for name in self.simulator.called:
            services.append({"name": name, **await self.simulator.faults(name)})
            marks |= self.simulator.services[name].marks.keys()
        sample = {"steps": [asdict(step) for step in self.order.steps]} if self.order else None
        return {"services": services, "marks": sorted(marks), "sample": sample}

    async def place(self, request: SampleRequest) -> str:
        """Place a sample order, and return its id.

        If the request names a step, that step is refused. Raises `RefusedError` if there is no
        sample order, and `InvalidError` if it has no such step.
        """
        if self.order is None:
            raise RefusedError(Cause(Code.NO_SAMPLE_ORDER))
        order_id = self.new_order_id()
        if request.refuse is not None:
            step = self.order.step(request.refuse)
            for name in step.services:
                await self.simulator.set_fault(name, step.refused(order_id))
        await self.submissions.put(self.order.submission(order_id, self.clock()).to_json())
        log.info("simulator.sample_placed", extra={"order_id": order_id})
        return order_id
