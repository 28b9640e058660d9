"""The shipped services on the explorer's ports, one set for each handler that begins."""

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
"""A handler that is run anew reads its message anew: what it says is remembered."""

GRACE = OperatorRequest(operator="grace", note="mended")
FORGET = OperatorRequest(operator="grace", note="the customer asked for it")
REFUSAL = "there is none"


def nothing(*_: Any) -> Any:
    """Stand in for a part that nothing here reaches."""


async def tolerated() -> None:
    """Stand in for the check of the clock: clocks differ here by no more than the tolerance."""


class CountedCallbackUrls(CallbackUrls):
    """URLs whose tokens follow from the attempts at their steps, and are not drawn by chance."""

    def token_for(self, step: Step) -> str:
        """See `CallbackUrls.token_for`."""
        return step.callback_token or f"after-attempt-{step.counts.attempts}"


class ExploredApp(Engine):
    """The engine as one event finds it: clock and ids come off the tape."""

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
        """See `Engine.unit_of_work`."""
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
        """What the process believes: whatever it did before, where a world lets that last."""
        lasts = self.deployed.believing
        belief = (
            recalled(self.tape.belief, self.adapters.clock)
            if lasts and self.tape.belief
            else super().admission
        )
        self.tape.belief = belief if lasts else None
        return belief

    def agent(self, agent: AgentDefinition) -> AgentService:
        """Make the agent of one remote service, whose circuit is the world's."""
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
        """Cancel the order at its customer's wish, by the endpoint of its workflow."""
        order = await self.store.load(order_id)
        await self.customers.cancel(self.deployed.endpoint_of(order.workflow), order_id)

    async def answer(self, job: Job) -> None:
        """Say to a step what somebody outside says."""
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
        """Answer a step over its link, as its service does."""
        if job.kind == CALL_BACK:
            body = EventBody(answer=dict(self.deployed.answer_of(job.step)))
        else:
            body = EventBody(refusal=REFUSAL)
        await self.callback_service.record(job.body, job.step, body, CallbackToken(token=job.token))

    async def settle(self, job: Job) -> None:
        """Say what an operator found out about a step in doubt."""
        answer = dict(self.deployed.answer_of(job.step)) if job.done else None
        found = {"step": job.step, "was_done": job.done, "answer": answer}
        action = BY_NAME[job.kind]
        request = act_request(action).model_validate(GRACE.model_dump() | found)
        await self.operations.orders.act(action, job.body, request)

    async def erase(self, order_id: str) -> None:
        """Forget who the customer is, as the operators' service does it to the order."""
        payload = self.business.payload
        await self.unit_of_work.run(
            order_id, lambda order, now: retention.erase(order, FORGET, payload, now)
        )

    async def ask(self, job: Job) -> None:
        """Let the agent that this job asks handle the request."""
        agent = self.agent(self.deployed.agent_of_kind(job.kind))
        await agent.handle(decode(AgentRequest, job.body))


async def sleep(seconds: float) -> None:
    """Stand in for a pause, which is no matter of correctness: time may pass at any moment."""


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
