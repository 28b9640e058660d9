"""The shipped services on the explorer's ports, one set for each handler."""

from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any

from agents.service import AgentService
from bootstrap.engine import Engine
from bootstrap.operations import Operations
from engine.azure import Adapters
from engine.decisions.operator_actions import BY_NAME
from engine.declarations.business import AgentDefinition
from engine.domain import messages
from engine.domain.messages import AgentRequest, OrderReady
from engine.domain.steps import Step
from engine.features.external_events.callback_urls import CallbackUrls
from engine.http.external_events import CallbackToken, EventBody
from engine.storage.order_memory import OrderMemory
from engine.storage.unit_of_work import UnitOfWork
from operations.api import retention
from operations.api.external_events import EventRequest, ExternalEventService
from operations.api.requests import OperatorRequest, act_request
from scheduler.admission.admission import Admission
from testkit.exploration.beliefs import recalled
from testkit.exploration.deployment import (
    CALL_BACK,
    CALLS_BACK,
    CUSTOMER_CANCEL,
    ERASE,
    OTHERWISE,
    REFUSE,
    SAYS,
    Deployment,
)
from testkit.exploration.driving import Handler, Job, Tape
from testkit.exploration.ports import (
    AgentHealths,
    ExploredBus,
    ExploredCircuitBreaker,
    ExploredLeadership,
    NoBulkhead,
    Poison,
    Publisher,
    Remote,
    Reporter,
    Store,
    Sweeps,
)

decode = lru_cache(maxsize=10_000)(messages.decode)
decode_reply = lru_cache(maxsize=10_000)(messages.decode_reply)
"""Cached, because a handler that is run again reads its message again."""

GRACE = OperatorRequest(operator="grace", note="mended")
FORGET = OperatorRequest(operator="grace", note="the customer asked for it")
REFUSAL = "there is none"


def nothing(*_: Any) -> Any:
    """Replaces a part that is never reached here."""


async def tolerated() -> None:
    """Replaces the check of the clock, because clocks differ by no more than the tolerance here."""


class CountedCallbackUrls(CallbackUrls):
    """Callback URLs with predictable tokens, which follow from the attempts at their steps."""

    def token_for(self, step: Step) -> str:
        return step.callback_token or f"after-attempt-{step.counts.attempts}"


class ExploredApp(Engine):
    """The engine for one handler. Its clock and ids come from the tape of the handler's run."""

    def __init__(self, deployed: Deployment, tape: Tape, slot: str) -> None:
        adapters = Adapters(
            table=nothing,
            queue=nothing,
            bus=ExploredBus(),
            events=Publisher(),
            leadership=ExploredLeadership(tape, slot),
            services=defaultdict(Remote),
            clock=lambda: deployed.clock_of(slot, tape.read("now")),
            clock_check=tolerated,
            new_id=nothing,
            new_callback_token=lambda: "right",
            close=nothing,
        )
        super().__init__(deployed.settings_of(slot), deployed.business_of(slot), adapters)
        self.deployed, self.tape, self.slot = deployed, tape, slot
        self.store: Any = Store()
        self.poison_store: Any = Poison()
        self.agent_health: Any = AgentHealths()
        self.sweeps: Any = Sweeps()

    @cached_property
    def operations(self) -> Operations:
        """The operators' side, on the same store."""
        operations = Operations(self)
        operations.archive = operations.background_store = self.store
        return operations

    @cached_property
    def callback_urls(self) -> CallbackUrls | None:
        """See `Engine.callback_urls`."""
        made = super().callback_urls
        return made and CountedCallbackUrls(address=made.address, new_token=made.new_token)

    @cached_property
    def unit_of_work(self) -> UnitOfWork:
        parts, lasts = self.adapters, self.deployed.remembering
        memory = OrderMemory() if lasts else OrderMemory(most=0)
        for order in self.tape.memory:
            memory.put(order)
        self.tape.memory = memory

        def new_id() -> str:
            return str(self.tape.read("id"))

        made = UnitOfWork(self.store, parts.bus, parts.clock, new_id)
        made.memory = memory
        return made

    @cached_property
    def admission(self) -> Admission:
        """The belief of the process, which lasts if the world requests it."""
        lasts = self.deployed.believing
        belief = (
            recalled(self.tape.belief, self.adapters.clock)
            if lasts and self.tape.belief
            else super().admission
        )
        self.tape.belief = belief if lasts else None
        return belief

    def agent(self, agent: AgentDefinition) -> AgentService:
        """Make the agent of one remote service, with a circuit that the world controls."""
        circuit: Any = ExploredCircuitBreaker(self.tape, agent.name, self.slot)
        clock = self.adapters.clock
        reporter = Reporter(
            agent=agent.name,
            instance=self.slot,
            circuit=circuit,
            agent_health=self.agent_health,
            clock=clock,
            hangs=self.deployed.hangs,
            _reported_at=clock() if self.deployed.has_just_spoken else None,
        )
        bulkhead: Any = NoBulkhead()
        service = super().agent(agent)
        return replace(
            service, sleep=sleep, circuit=circuit, bulkhead=bulkhead, health_reporter=reporter
        )

    async def cancel(self, order_id: str) -> None:
        """Cancel the order as its customer, at the endpoint of its workflow."""
        order = await self.store.load(order_id)
        await self.customers.cancel(self.deployed.endpoint_of(order.workflow), order_id)

    async def answer(self, job: Job) -> None:
        """Answer a step as a person outside."""
        content = None if job.kind == REFUSE else dict(self.deployed.answer_of(job.step))
        if job.kind == OTHERWISE and content:
            content |= dict.fromkeys(content, OTHERWISE)
        refusal = REFUSAL if content is None else None
        request = EventRequest(operator="outside", answer=content, refusal=refusal)
        service = ExternalEventService(
            unit_of_work=self.unit_of_work,
            workflows=self.business.workflows,
            payload=self.business.payload,
        )
        await service.record(job.body, job.step, request)

    async def call_back(self, job: Job) -> None:
        """Answer a step at its callback URL, as its service."""
        if job.kind == CALL_BACK:
            body = EventBody(answer=dict(self.deployed.answer_of(job.step)))
        else:
            body = EventBody(refusal=REFUSAL)
        await self.callback_service.record(job.body, job.step, body, CallbackToken(token=job.token))

    async def settle(self, job: Job) -> None:
        """Settle a step in doubt as an operator."""
        answer = dict(self.deployed.answer_of(job.step)) if job.done else None
        found = {"step": job.step, "was_done": job.done, "answer": answer}
        action = BY_NAME[job.kind]
        request = act_request(action).model_validate(GRACE.model_dump() | found)
        await self.operations.orders.act(action, job.body, request)

    async def erase(self, order_id: str) -> None:
        """Erase the customer's data in the order, as the operators' service does."""
        payload = self.business.payload
        await self.unit_of_work.run(
            order_id, lambda order, now: retention.erase(order, FORGET, payload, now)
        )

    async def ask(self, job: Job) -> None:
        """Let the agent handle the request of this job."""
        agent = self.agent(self.deployed.agent_of_kind(job.kind))
        await agent.handle(decode(AgentRequest, job.body))


async def sleep(seconds: float) -> None:
    """Replaces a pause, which does not matter for correctness: time may pass at any moment."""


def begin(deployed: Deployment, tape: Tape, handler: Handler) -> Coroutine[Any, Any, Any]:
    """Return the coroutine of the service that a handler runs."""
    app, job = ExploredApp(deployed, tape, handler.slot), handler.job
    if job.kind in deployed.requests:
        return app.ask(job)
    if job.kind == CUSTOMER_CANCEL:
        return app.cancel(job.body)
    if job.kind == "settle":
        return app.settle(job)
    if job.kind in BY_NAME:
        return app.operations.orders.act(BY_NAME[job.kind], job.body, GRACE)
    return _DOES[job.kind](app, job)


_DOES: Mapping[str, Callable[[ExploredApp, Job], Coroutine[Any, Any, Any]]] = {
    **dict.fromkeys(SAYS, lambda app, job: app.answer(job)),
    **dict.fromkeys(CALLS_BACK, lambda app, job: app.call_back(job)),
    ERASE: lambda app, job: app.erase(job.body),
    "submission": lambda app, job: app.submission.record(job.body.encode()),
    "wake": lambda app, job: app.scheduler.on_order_ready(decode(OrderReady, job.body)),
    "reply": lambda app, job: app.scheduler.receive(decode_reply(job.body), job.agent),
    "poll": lambda app, _: app.scheduler.poll(),
    "sweep": lambda app, _: app.supervisor.sweep(),
    "relay": lambda app, _: app.operations.relay.relay(),
}
