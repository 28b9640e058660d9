"""The shipped services on the explorer's ports, one set for each handler that begins."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import workflows
from agents.service import AgentService
from alerts.relay import Relay
from core import messages
from core.keys import buckets
from core.messages import (
    SCHEDULER_REQUESTS,
    AgentReply,
    AgentRequest,
    WakeUp,
    requests_queue,
    responses_queue,
)
from core.transitions import Transitions
from core.workflow import Workflows
from exploration.beliefs import recalled
from exploration.driving import Handler, Job, Tape
from exploration.ports import (
    Bus,
    Circuit,
    Leadership,
    Measures,
    NoGauge,
    NoLimits,
    Poison,
    Publisher,
    Remote,
    Store,
    Sweeps,
)
from operators.requests import OperatorRequest, SkipRequest
from operators.service import OperatorService
from scheduler.admission import Admission
from scheduler.rules import SchedulerRules
from scheduler.service import SchedulerService
from submission.rules import Terms
from submission.service import SubmissionService
from supervisor.rules import SupervisorRules
from supervisor.service import SupervisorService
from workflows.catalogue import BY_SKU

decode = lru_cache(maxsize=10_000)(messages.decode)
"""A handler that is run anew reads its message anew: what it says is remembered."""

WORKFLOWS = Workflows(*workflows.ALL.all)
"""What the explored app knows; a world puts its own in its place."""

KNOWN: Mapping[str, Workflows] = {}
"""What instances of another version of the app know instead (FLT-12)."""

CLOCKS: Mapping[str, timedelta] = {}
"""By how much the clocks of instances are ahead of the true time (FLT-9)."""

ALLOWED = timedelta(seconds=8)
MARGIN = timedelta(seconds=1)
TOLERANCE = timedelta(seconds=1)
LEASE = timedelta(seconds=4)
REST = timedelta(seconds=60)
THRESHOLD = 2
OFFERS: Mapping[str, Sequence[str]] = {"payment": ("payment",)}
BUCKETS = 1
MOST_OPEN = 10
"""At one agent."""
PROCESSES = 2
"""How many schedulers look for themselves."""
BELIEVING = False
"""Whether what a scheduler's process believes outlives an event; if not, it begins anew with each."""
SENDERS = "status-"
"""What the names of the senders' queues begin with."""
GRACE = OperatorRequest(operator="grace", note="mended")

SLOTS = {
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

REMEMBERING = ("scheduler-1", "scheduler-2", "scheduler-3")
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
KINDS = {queue: kind for kind, queue in QUEUES.items()} | {responses_queue("payment-backup"): "reply"}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a handler is given: who it is, its clock and its ids, both off the tape."""

    tape: Tape
    slot: str

    def now(self) -> Any:
        """The clock."""
        return clock_of(self.slot, self.tape.read("now"))

    def transitions(self) -> Transitions:
        """The one way in which an order changes."""
        return Transitions(Store(), Bus(), self.now, lambda: self.tape.read("id"), self.tape.remembered)

    def admission(self) -> Admission:
        """What the process believes."""
        if not (BELIEVING and self.tape.belief):
            admission = Admission(offers=OFFERS, clock=self.now, most=MOST_OPEN)
        else:
            admission = recalled(self.tape.belief, self.now)
        self.tape.belief = admission if BELIEVING else None
        return admission


def begin(tape: Tape, handler: Handler) -> Coroutine[Any, Any, Any]:
    """The coroutine of the service that a handler runs."""
    return _DOES[handler.job.kind](Surroundings(tape, handler.slot), handler.job)


def _receive(at: Surroundings, job: Job) -> Coroutine[Any, Any, Any]:
    return _scheduler(at).receive(decode(AgentReply, job.body), job.agent)


def _operator(at: Surroundings) -> OperatorService:
    return OperatorService(
        transitions=at.transitions(),
        store=Store(),
        archive=None,
        clock=at.now,
        workflows=WORKFLOWS,
        acting=None,
        measures=Measures(at.tape),
        buckets=BUCKETS,
    )


def _submission(at: Surroundings) -> SubmissionService:
    terms = Terms(
        workflows=WORKFLOWS,
        skus=frozenset(BY_SKU),
        reply_to_prefix=SENDERS,
        buckets=frozenset(buckets(BUCKETS)),
        allowance=ALLOWED,
        threshold=THRESHOLD,
        rest=REST,
    )
    return SubmissionService(
        transitions=at.transitions(),
        store=Store(),
        poison=Poison(),
        clock=at.now,
        terms=terms,
        instance=at.slot,
        unknown_name_tries=1,
    )


def _scheduler(at: Surroundings) -> SchedulerService:
    return SchedulerService(
        transitions=at.transitions(),
        store=Store(),
        clock=at.now,
        rules=SchedulerRules(instance=at.slot, workflows=known_to(at.slot), clock_tolerance=TOLERANCE),
        admission=at.admission(),
        measures=Measures(at.tape),
        buckets=BUCKETS,
    )


def _agent(at: Surroundings, name: str) -> AgentService:
    async def sleep(seconds: float) -> None:
        """A pause is no matter of correctness: the time may pass at any moment anyway."""

    return AgentService(
        name=name,
        remote=Remote(),
        bus=Bus(),
        clock=at.now,
        sleep=sleep,
        margin=MARGIN,
        call_timeout=ALLOWED,
        circuit=Circuit(at.tape, name),
        limits=NoLimits(),
        gauge=NoGauge(),
    )


def _supervisor(at: Surroundings) -> SupervisorService:
    return SupervisorService(
        transitions=at.transitions(),
        store=Store(),
        leadership=Leadership(at.tape, at.slot),
        sweeps=Sweeps(),
        clock=at.now,
        rules=SupervisorRules(instance=at.slot, clock_tolerance=TOLERANCE),
        buckets=BUCKETS,
    )


def _relay(at: Surroundings) -> Relay:
    return Relay(store=Store(), publisher=Publisher(), bus=Bus(), clock=at.now, buckets=BUCKETS, most_tries=1)


_DOES: Mapping[str, Callable[[Surroundings, Job], Coroutine[Any, Any, Any]]] = {
    "submission": lambda at, job: _submission(at).record(job.body.encode()),
    "wake": lambda at, job: _scheduler(at).wake(decode(WakeUp, job.body)),
    "reply": _receive,
    "poll": lambda at, job: _scheduler(at).poll(),
    "request": lambda at, job: _agent(at, "payment").handle(decode(AgentRequest, job.body)),
    "backup-request": lambda at, job: _agent(at, "payment-backup").handle(decode(AgentRequest, job.body)),
    "sweep": lambda at, job: _supervisor(at).sweep(),
    "relay": lambda at, job: _relay(at).relay(),
    "resubmit": lambda at, job: _operator(at).resubmit(job.body, GRACE),
    "skip": lambda at, job: _operator(at).skip(job.body, SkipRequest(operator="grace", note="done by hand")),
    "cancel": lambda at, job: _operator(at).cancel(job.body, GRACE),
}
