"""The parts of the simulation: its settings, recorded orders, processes, and Azure's limits."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import simpy

from engine.declarations.workflow import StepDefinition, WorkflowDefinition
from scheduler.admission import admission

REFRESH_INTERVAL = admission.REFRESH_INTERVAL.total_seconds()
"""The time between two refreshes of a process."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What each part of Azure takes in a second. `docs/operations/scale.md` names the sources."""

    bus_credits: float = 1_000
    account_requests: float = 20_000
    partition_entities: float = 2_000
    queue_messages: float = 2_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """The simulated system. Times are in seconds."""

    workflow: WorkflowDefinition
    rate: float
    """The orders per second."""
    seconds: float = 10.0
    """How long orders are submitted."""
    process_per_function: bool = False
    """Whether each function has its own processes."""
    instances: int = 1
    """The processes of each function, or of all together."""
    buckets: int = 8
    hop: float = 0.005
    """The average time of a request to a table, and of the delivery of a message."""
    call: float = 0.005
    """The average time of a call to a service."""
    poll: float = 2.0
    sweep: float = 2.0
    relay: float = 2.0
    watch: float = 5.0
    limits: Limits = Limits()


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulatedOrder:
    """A recorded order."""

    version: int = 1
    done: frozenset[str] = frozenset()
    running: Mapping[str, int] = field(default_factory=dict)
    """The version with which each running step started, which stands for its complete-by time."""

    def work_items(self, workflow: WorkflowDefinition) -> set[str]:
        """Return the keys of the order's work items."""
        pending = {f"pending {step.capability}" for step in self.startable(workflow)}
        return pending | {f"running {began}" for began in sorted(self.running.values())[:1]}

    def startable(self, workflow: WorkflowDefinition) -> list[StepDefinition]:
        tried = self.done | self.running.keys()
        return [
            step
            for step in workflow.steps
            if step.name not in tried and self.done.issuperset(step.after)
        ]

    def go_on(self, workflow: WorkflowDefinition) -> "SimulatedOrder":
        """Return the next version of the order, in which all startable steps have started."""
        version = self.version + 1
        started = {step.name: version for step in self.startable(workflow)}
        return replace(self, version=version, running={**self.running, **started})


Decide = Callable[[SimulatedOrder], SimulatedOrder | None]


@dataclass(kw_only=True, eq=False)
class Commit:
    """A change that waits for its transaction."""

    order: int
    before: SimulatedOrder
    after: SimulatedOrder
    entities: int
    ended: simpy.Event


@dataclass(kw_only=True, eq=False)
class SimulatedProcess:
    """A process, with its waiting changes by bucket."""

    refreshed_at: float = -REFRESH_INTERVAL
    reported_at: dict[str, float] = field(default_factory=dict)
    """When the process last reported the health of its agents."""
    written: dict[int, SimulatedOrder] = field(default_factory=dict)
    """The orders as the process wrote them last, until it decides on them."""
    waiting: defaultdict[int, list[Commit]] = field(default_factory=lambda: defaultdict(list))
    flushing: set[int] = field(default_factory=set)


@dataclass(kw_only=True)
class Gate:
    """Limits and counts an amount per second."""

    rate: float
    passed: float = 0
    free_at: float = 0

    def wait(self, now: float, amount: float) -> float:
        """Take an amount. Return how many seconds this has to wait."""
        self.passed += amount
        begins = max(now, self.free_at)
        self.free_at = begins + amount / self.rate
        return begins - now
