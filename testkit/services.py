"""The agents' services in memory. They record every effect, and fail on request.

They follow the rules of the simulated services (`samples/simulator/rules.py`).
"""

import asyncio
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from engine.azure.answers import LONGEST_PAUSE
from engine.azure.code import CodeService
from engine.declarations.business import AgentDefinition, Application
from engine.domain.errors import (
    CallTimeoutError,
    DeferredError,
    RejectedError,
    TransientError,
)
from engine.domain.messages import AgentRequest
from engine.ports import Clock, RemoteService
from samples.simulator.ledger import Ledger
from samples.simulator.rules import (
    FaultInForce,
    Match,
    SimulatedCall,
    SimulatedEffect,
    SimulatedFault,
    SimulatedService,
    simulated,
)
from samples.simulator.service import SimulatedAnswer, Simulator
from testkit.memory import of_columns

NEVER_MS = 30_000
"""The connection of a hanging call breaks after this time, if the caller waits that long."""

Mode = Literal["down", "reject", "hang", "late", "accept"]


class OrderedLedger(Ledger):
    """A ledger that also records the order of the effects, whose times may all be the same."""

    def __init__(self) -> None:
        super().__init__(of_columns())
        self.happened: list[tuple[str, SimulatedEffect]] = []
        """The capability and the effect, the oldest first."""

    async def effect(
        self, service: str, effect: SimulatedEffect, *, forbids: str | None
    ) -> SimulatedEffect | None:
        stands = await super().effect(service, effect, forbids=forbids)
        if stands is effect:
            self.happened.append((service, effect))
        return stands


class Services:
    """The service of each agent of a business.

    Activities are called with `function_settings`. If that is None, they are simulated, too.
    """

    def __init__(
        self,
        business: Application,
        clock: Clock,
        function_settings: Mapping[str, str] | None = None,
    ) -> None:
        self._services: Mapping[str, SimulatedService] = {}
        self._agents: Mapping[str, AgentDefinition] = {}
        self._function_settings = function_settings
        self._failing: set[tuple[str, str]] = set()
        """The operations that a test lets fail, with their agents."""
        self._clock = clock
        self._ledger = OrderedLedger()
        self._reasons: dict[tuple[str, str], str] = {}
        self._working: set[asyncio.Task[SimulatedAnswer]] = set()
        self.upgrade(business)

    def upgrade(self, business: Application) -> None:
        """Serve the operations of another version of the business, too."""
        self._services = {**self._services, **simulated(business)}
        self._agents = {**self._agents, **{agent.name: agent for agent in business.agents}}

    def by_agent(self) -> Mapping[str, RemoteService]:
        """Return the service of each agent, for calls by the agent."""
        return {name: self._service(name) for name in self._services}

    def _service(self, name: str) -> RemoteService:
        in_memory, agent = _ServiceInMemory(name, self), self._agents[name]
        if not agent.code or self._function_settings is None:
            return in_memory
        functions = CodeService(
            agent=name,
            operations=agent.code,
            settings=self._function_settings,
            at_once=agent.calls_in_flight,
            answer_within=agent.answer_within,
            longest_wait=LONGEST_PAUSE,
            start=_at_once,
        )
        return _Functions(in_memory, functions, self.is_failing)

    def is_failing(self, agent: str, operation: str) -> bool:
        return (agent, operation) in self._failing

    def effects(self, agent: str, order_id: str | None) -> Sequence[str]:
        """Return the operations that took effect at the agent's service, in their order."""
        self.check(agent)
        return [
            effect.action
            for service, effect in self._ledger.happened
            if service == self._services[agent].name and order_id in (None, effect.order_id)
        ]

    async def fail(
        self, mode: Mode, agent: str, operation: str | None, reason: str | None = None
    ) -> None:
        """Let an operation, or all operations, of the agent's service fail.

        `reason` is for a refusal.
        """
        self.check(agent, operation)
        for name in [operation] if operation else self._services[agent].actions:
            self._failing.add((agent, name))
            self._reasons[agent, name] = reason or self._services[agent].refusal
            fault = FaultInForce(mode=mode, latency_ms=NEVER_MS, match=Match(action=name))
            await self._ledger.set_fault(agent, fault)

    async def heal(self, agent: str | None, operation: str | None) -> None:
        """Let an operation work again, or all operations of a service, or all services."""
        if agent is not None:
            self.check(agent, operation)
        key = (
            SimulatedFault(mode="none", match=Match(action=operation)).key() if operation else None
        )
        for name in self._services if agent is None else [agent]:
            healed = [operation] if operation else self._services[name].actions
            self._failing -= {(name, each) for each in healed}
            await self._ledger.clear_faults(name, key)

    def check(self, agent: str, operation: str | None = None) -> None:
        """Raise LookupError, with the known names, if the agent has no such operation."""
        if agent not in self._services:
            agents = ", ".join(sorted(self._services))
            raise LookupError(f"there is no agent {agent}; there are {agents}")
        known = self._services[agent].actions
        if operation is not None and operation not in known:
            operations = ", ".join(sorted(known))
            raise LookupError(f"{agent} has no operation {operation}; it has {operations}")

    def refuses_with(self, agent: str) -> int:
        return self._services[agent].refuses_with

    def begin(self, agent: str, request: AgentRequest) -> asyncio.Task[SimulatedAnswer]:
        """Start work on a call. The service continues if its caller stops waiting."""
        task = asyncio.get_running_loop().create_task(self._work(agent, request))
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        return task

    async def _work(self, agent: str, request: AgentRequest) -> SimulatedAnswer:
        """Answer a call of an agent, with the present faults of its service."""
        service = self._services[agent]
        reason = self._reasons.get((agent, request.operation), service.refusal)
        simulator = Simulator(  # a new one, since a simulator remembers the faults for a moment
            services={agent: replace(service, refusal=reason)},
            called=[agent],
            ledger=self._ledger,
            clock=self._clock,
            sleep=asyncio.sleep,
            chance=lambda: 1.0,
        )
        call = SimulatedCall(order_id=request.order_id, step=request.step, order=request.content)
        return await simulator.call(agent, request.operation, request.idempotency_key, call)


def warn_of_functions(business: Application) -> None:
    """Warn the test about activities that are not called."""
    functions = [f"{agent.name}.{name}" for agent in business.agents for name in agent.code]
    if functions:
        warnings.warn(
            f"functions of the business that are not called, but simulated: {', '.join(functions)}."
            " To call them, give the settings that they read: call_functions_with={...}",
            # The test that calls this function's caller.
            stacklevel=3,
        )


def _at_once(run: Callable[[], None], _: str) -> None:
    """Run a plain function in its caller, while time stands still."""
    run()


@dataclass(frozen=True)
class _Functions:
    """`RemoteService` that calls activities, and records their effects in memory."""

    in_memory: "_ServiceInMemory"
    functions: CodeService
    is_failing: Callable[[str, str], bool]

    async def call(self, request: AgentRequest, timeout_seconds: float) -> Mapping[str, Any]:
        is_function = request.operation in self.functions.operations
        if not is_function or self.is_failing(self.in_memory.agent, request.operation):
            return await self.in_memory.call(request, timeout_seconds)
        result = await self.functions.call(request, timeout_seconds)
        await self.in_memory.call(request, timeout_seconds)
        return result


@dataclass(frozen=True)
class _ServiceInMemory:
    """`RemoteService` for the service of one agent."""

    agent: str
    services: Services

    async def call(self, request: AgentRequest, timeout_seconds: float) -> Mapping[str, Any]:
        """Call the service. The statuses mean the same as over HTTP."""
        working = self.services.begin(self.agent, request)
        try:
            async with asyncio.timeout(timeout_seconds):
                answer = await asyncio.shield(working)
        except TimeoutError:
            raise CallTimeoutError("no answer: TimeoutError") from None
        if answer.status == 200:
            return answer.result
        if answer.status in (410, self.services.refuses_with(self.agent)):
            raise RejectedError(answer.reason)
        if answer.status == 202 and answer.retry_after:
            raise DeferredError(answer.reason, retry_after=answer.retry_after)
        raise TransientError(f"{answer.status} {answer.reason}")
