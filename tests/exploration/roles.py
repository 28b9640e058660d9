"""The shipped services on the explorer's ports, one set for each handler that begins."""

from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from typing import Any

import builders
from apps import set_to

from adapters import Adapters
from adapters.settings import Settings
from agents.service import AgentService
from bootstrap import App
from core import messages
from core.actions import BY_NAME
from core.business import Agent, Business
from core.messages import (
    SCHEDULER_REQUESTS,
    AgentReply,
    AgentRequest,
    WakeUp,
    requests_queue,
    responses_queue,
)
from core.workflow import Workflows
from exploration.beliefs import recalled
from exploration.driving import Handler, Job, Tape
from exploration.ports import (
    AgentHealths,
    Bus,
    CircuitBreaker,
    Leadership,
    NoBulkhead,
    Poison,
    Publisher,
    Remote,
    Reporter,
    Store,
    Sweeps,
)
from operators.requests import ActRequest
from scheduler.admission import Admission
from stores.transitions import Transitions

decode = lru_cache(maxsize=10_000)(messages.decode)
"""A handler that is run anew reads its message anew: what it says is remembered."""

WORKFLOWS = Workflows(*builders.WORKFLOWS.all)
"""What the explored app knows; a world puts its own in its place."""

KNOWN: Mapping[str, Workflows] = {}
"""What instances of another version of the app know instead (FLT-12)."""

CLOCKS: Mapping[str, timedelta] = {}
"""By how much the clocks of instances are ahead of the true time (FLT-9)."""

ALLOWED = timedelta(seconds=8)
MARGIN = timedelta(seconds=1)
TOLERANCE = timedelta(seconds=1)
LEASE = timedelta(seconds=4)
COOLDOWN = timedelta(seconds=60)
THRESHOLD = 2
OFFERS: Mapping[str, Sequence[str]] = {"payment": ("payment",)}
PROVIDERS: Mapping[str, str] = {"payment": "psp", "payment-backup": "psp"}
"""By agent, whose idempotency keys its service knows."""
REMEMBERS_REFUSALS = False
"""Whether services repeat a refusal for its idempotency key (AGT-3)."""
ANSWER_WITHIN: timedelta | None = None
"""How long services may take for what they accept; None if they do it at once (AGT-11)."""
KEYS_LAST: timedelta | None = None
"""How long services remember an idempotency key; None for ever (AGT-12)."""
BUCKETS = 1
CALLS_IN_FLIGHT = 10
"""What each agent declares; as many requests may be open at it."""
ANSWERS = True
"""Whether agents live to tell how a call went; if not, each call kills the process that makes it."""
HAS_JUST_SPOKEN = False
"""Whether agents have said something a moment ago, so that they do not say at once what they begin."""
MOST_ATTEMPTS = 1_000
"""How often a step may be tried."""
PROCESSES = 2
"""How many schedulers look for themselves."""
BELIEVING = False
"""Whether what a scheduler's process believes outlives an event; if not, it begins anew with each."""
SENDERS = "status-"
"""What the names of the senders' queues begin with."""
GRACE = ActRequest(operator="grace", note="mended")

SLOTS: Mapping[str, tuple[str, ...]] = {
    "submission": ("submission",),
    "wake": ("scheduler-1", "scheduler-2"),
    "reply": ("scheduler-1", "scheduler-2"),
    "poll": ("scheduler-1", "scheduler-2"),
    "request": ("agent-1", "agent-2"),
    "backup-request": ("agent-3",),
    "sweep": ("supervisor-1", "supervisor-2"),
    "relay": ("relay",),
}
"""Who may do what; each does one thing at a time, side by side with all the others."""

INSTANCES = {"payment": ("agent-1", "agent-2"), "payment-backup": ("agent-3",)}
"""Of each agent."""

"""Who remembers orders from one thing that it does to the next, until it crashes."""


def clock_of(slot: str, now: datetime) -> datetime:
    """What the clock of this instance shows."""
    return now + CLOCKS.get(slot, timedelta())


def known_to(slot: str) -> Workflows:
    """The workflows that this instance knows."""
    return KNOWN.get(slot, WORKFLOWS)


QUEUES = {
    "submission": "order-submissions",
    "wake": SCHEDULER_REQUESTS,
    "request": requests_queue("payment"),
    "backup-request": requests_queue("payment-backup"),
    "reply": responses_queue("payment"),
}
KINDS = {queue: kind for kind, queue in QUEUES.items()} | {
    responses_queue("payment-backup"): "reply"
}


@lru_cache
def settings_of(slot: str, threshold: int, offers: tuple[str, ...]) -> Settings:
    """What an instance is set to do."""
    return set_to(
        instance_id=slot,
        addresses=dict.fromkeys(offers, "http://explored"),
        buckets=BUCKETS,
        reply_to_prefix=SENDERS,
        step_timeout_seconds=ALLOWED.total_seconds(),
        agent_margin_seconds=MARGIN.total_seconds(),
        remote_call_timeout_seconds=ALLOWED.total_seconds(),
        clock_tolerance_seconds=TOLERANCE.total_seconds(),
        cooldown_seconds=COOLDOWN.total_seconds(),
        failure_threshold=threshold,
        unknown_name_tries=1,
        notice_tries=1,
    )


def declared(name: str, capability: str) -> Agent:
    """An agent that offers this."""
    return Agent(
        name=name,
        offers=capability,
        address=name,
        calls_in_flight=CALLS_IN_FLIGHT,
        provider=PROVIDERS[name],
        remembers_refusals=REMEMBERS_REFUSALS,
        answer_within=ANSWER_WITHIN,
        keys_last=KEYS_LAST,
    )


def nothing(*_: Any) -> None:
    """A part that nothing here reaches."""


async def tolerated() -> None:
    """Clocks differ here by no more than the tolerance."""


class Explored(App):
    """The app as one event finds it: clock and ids off the tape, and what outlives events in its process."""

    def __init__(self, tape: Tape, slot: str) -> None:
        agents = tuple(agent for names in OFFERS.values() for agent in names)
        business = Business(
            workflows=known_to(slot),
            default_workflow="order",
            agents=[
                declared(name, capability) for capability, names in OFFERS.items() for name in names
            ],
            payload=builders.PAYLOAD,
        )
        adapters = Adapters(
            table=nothing,
            queue=nothing,
            bus=Bus(),
            events=Publisher(),
            leadership=Leadership(tape, slot),
            services=defaultdict(Remote),
            clock=lambda: clock_of(slot, tape.read("now")),
            clock_check=tolerated,
            new_id=nothing,
            close=nothing,
        )
        super().__init__(settings_of(slot, THRESHOLD, agents), business, adapters)
        self.tape, self.slot = tape, slot
        self.store, self.poison_store = Store(), Poison()
        self.agent_health, self.sweeps = AgentHealths(), Sweeps()

    @cached_property
    def transitions(self) -> Transitions:
        parts = self.adapters
        return Transitions(self.store, parts.bus, parts.clock, lambda: self.tape.read("id"))

    @cached_property
    def admission(self) -> Admission:
        """What the process believes."""
        belief = (
            recalled(self.tape.belief, self.adapters.clock)
            if BELIEVING and self.tape.belief
            else super().admission
        )
        self.tape.belief = belief if BELIEVING else None
        return belief

    def agent(self, name: str) -> AgentService:
        (agent,) = (each for each in self.agents if each.name == name)
        circuit, clock = CircuitBreaker(self.tape, name, self.slot), self.adapters.clock
        reporter = Reporter(
            agent=name,
            instance=self.slot,
            circuit=circuit,
            agent_health=self.agent_health,
            clock=clock,
            _said_at=clock() if HAS_JUST_SPOKEN else None,
        )
        return replace(
            super().agent(agent),
            sleep=sleep,
            circuit=circuit,
            bulkhead=NoBulkhead(),
            health_reporter=reporter,
        )


async def sleep(seconds: float) -> None:
    """A pause is no matter of correctness: the time may pass at any moment anyway."""


def begin(tape: Tape, handler: Handler) -> Coroutine[Any, Any, Any]:
    """The coroutine of the service that a handler runs."""
    return _DOES[handler.job.kind](Explored(tape, handler.slot), handler.job)


_DOES: Mapping[str, Callable[[Explored, Job], Coroutine[Any, Any, Any]]] = {
    "submission": lambda app, job: app.submission.record(job.body.encode()),
    "wake": lambda app, job: app.scheduler.wake(decode(WakeUp, job.body)),
    "reply": lambda app, job: app.scheduler.receive(decode(AgentReply, job.body), job.agent),
    "poll": lambda app, job: app.scheduler.poll(),
    "request": lambda app, job: app.agent("payment").handle(decode(AgentRequest, job.body)),
    "backup-request": lambda app, job: app.agent("payment-backup").handle(
        decode(AgentRequest, job.body)
    ),
    "sweep": lambda app, job: app.supervisor.sweep(),
    "relay": lambda app, job: app.relay.relay(),
    "resubmit": lambda app, job: app.orders.act(BY_NAME["resubmit"], job.body, GRACE),
    "skip": lambda app, job: app.orders.act(BY_NAME["skip"], job.body, GRACE),
    "renew": lambda app, job: app.orders.act(BY_NAME["renew"], job.body, GRACE),
    "cancel": lambda app, job: app.orders.act(BY_NAME["cancel"], job.body, GRACE),
    "hold": lambda app, job: app.orders.act(BY_NAME["hold"], job.body, GRACE),
    "release": lambda app, job: app.orders.act(BY_NAME["release"], job.body, GRACE),
}
