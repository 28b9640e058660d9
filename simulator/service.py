"""The simulated services: they remember every effect, and fail as they are told."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from core.ports import Clock
from simulator import rules
from simulator.ledger import Ledger
from simulator.rules import Call, Effect, Fault, FaultInForce, Match, Mode, Service

FAULT_CACHE_SECONDS = 0.25
"""How long a host may go by the faults it has read: reading them for each call is too dear."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What the caller gets to hear."""

    status: int
    body: Mapping[str, Any]


@dataclass(kw_only=True)
class Simulator:
    """All simulated services of this app."""

    services: Mapping[str, Service]
    """By agent."""
    ledger: Ledger
    clock: Clock
    sleep: Callable[[float], Awaitable[None]]
    chance: Callable[[], float]
    _known: dict[str, tuple[datetime, asyncio.Future[Sequence[FaultInForce]]]] = field(default_factory=dict)
    """By service: when a reading of its faults began, and the reading."""

    def knows(self, agent: str, action: str | None = None) -> bool:
        """Whether there is a service of this agent, and whether it does this."""
        service = self.services.get(agent)
        return service is not None and (action is None or action in service.actions)

    async def call(self, agent: str, action: str, key: str, call: Call) -> Answer:
        """Do what the action says, at most once for each key, unless a fault is in the way."""
        service = self.services[agent]
        await self.ledger.count_call(service.name, key, action)
        fault = rules.fault_for(await self._faults(agent), action, call, self.clock())
        plan = rules.plan(service, fault, self.chance())
        stands: Effect | None = None
        if plan.effect_is_late:
            await self.sleep(plan.delay_seconds)
        if plan.effect:
            stands = await self._happen(service, action, key, call)
            if stands is None:
                return _problem(410, "it was undone under this key, and is refused since")
        if not plan.effect_is_late:
            await self.sleep(plan.delay_seconds)
        if plan.status != 200 or stands is None:
            return _problem(plan.status, plan.reason)
        return Answer(status=200, body=stands.result)

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
        """Put a fault in force; returns once every host goes by it."""
        if fault.mode is Mode.NONE:
            await self.ledger.clear_faults(service, None if fault.match == Match() else fault.key())
        else:
            until = self.clock() + timedelta(seconds=fault.for_seconds) if fault.for_seconds else None
            await self.ledger.set_fault(service, FaultInForce(fault=fault, until=until))
        await self.sleep(FAULT_CACHE_SECONDS)
        self._known.pop(service, None)
        return await self.faults(service)

    async def faults(self, service: str) -> Mapping[str, Any]:
        """Return what is in force."""
        entries = rules.in_force(await self._faults(service), self.clock())
        return {"faults": [_shown(entry) for entry in entries]}

    async def _faults(self, service: str) -> Sequence[FaultInForce]:
        """Return what is known of the faults; all who ask within the cache time share one reading.

        Its age counts from its beginning: what it found was in force at no earlier time.
        """
        now = self.clock()
        began, reading = self._known.get(service, (None, None))
        if began is None or reading is None or not 0 <= (now - began).total_seconds() < FAULT_CACHE_SECONDS:
            reading = asyncio.ensure_future(self.ledger.faults(service))
            self._known[service] = (now, reading)
        try:
            return await asyncio.shield(reading)
        except Exception:
            if self._known.get(service, (None, None))[1] is reading:
                del self._known[service]
            raise


def _shown(entry: FaultInForce) -> dict[str, Any]:
    shown = entry.fault.model_dump(mode="json", by_alias=True, exclude_none=True)
    return shown | ({"until": entry.until.isoformat()} if entry.until else {})


def _problem(status: int, reason: str) -> Answer:
    return Answer(
        status=status, body={"type": "about:blank", "title": "The call failed", "status": status, "detail": reason}
    )
