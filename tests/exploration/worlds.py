"""The named worlds."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import workflows
from core.orders import Policy
from core.workflow import StepDefinition, Workflow, Workflows
from exploration.driving import one_after_another
from exploration.moves import on_its_way
from exploration.roles import SLOTS
from exploration.world import World

NOW = datetime(2026, 1, 31, 8, 15, tzinfo=UTC)
ORDER_ID = "b00-01JCX4T9Q8ZK7M2N5P6R3S1V0W"
SUBMISSION = {
    "schemaVersion": 1,
    "orderId": ORDER_ID,
    "placedAt": "2026-01-31T08:15:00Z",
    "customer": {"name": "Ada", "email": "ada@example.com"},
    "items": [{"sku": "TEA-SENCHA", "quantity": 2, "unitPrice": "14.00"}],
    "workflow": "payment-only",
}


def _nothing(order: Any, results: Any) -> dict[str, Any]:
    return {}


def _step(name: str, *after: str, policy: Policy = Policy.UNDO, rests: int = 0) -> StepDefinition:
    """A step that can be undone; one agent does them all."""
    return StepDefinition(
        name=name,
        capability="payment",
        does="do",
        undone_by="undo",
        request=_nothing,
        after=after,
        policy=policy,
        most_rests=rests,
    )


SINGLE = workflows.ALL.latest("payment-only")
IN_SEQUENCE = Workflow(name="in-sequence", version=1, steps=(_step("a"), _step("b", "a"), _step("c", "b")))
ONE = Workflow(name="one", version=1, steps=(_step("a"),))
RESTING = Workflow(name="resting", version=1, steps=(_step("a", policy=Policy.REST, rests=1),))
PAIR = Workflow(name="pair", version=1, steps=(_step("a"), _step("b", "a")))
PLAIN = Workflow(name="plain", version=1, steps=(replace(_step("a", policy=Policy.ERROR), undone_by=None),))
PARALLEL = Workflow(name="parallel", version=1, steps=(_step("a"), _step("b")))
PARALLEL_ERROR = Workflow(name="parallel-error", version=1, steps=(_step("a", policy=Policy.ERROR), _step("b")))


@dataclass(frozen=True, kw_only=True, slots=True)
class WorldOf:
    """One order; two schedulers, two agents, two supervisors; and what goes wrong."""

    workflow: Workflow = SINGLE
    faults: int = 0
    acts: int = 0
    """How often an operator does something, at any moment at which it makes sense."""
    operator: tuple[str, ...] = ("resubmit",)
    """What that may be."""
    threshold: int = 2
    """At how many failures the step is given up."""
    agents: tuple[str, ...] = ("payment",)
    """Who offers what every step needs."""
    circuits: bool = False
    """Whether circuits may open."""
    alone: bool = False
    """Whether there is one of each role only, for what no race is needed to see."""

    def __str__(self) -> str:
        operator = f"{' or '.join(self.operator)} {self.acts}"
        text = f"{self.workflow.name}, faults {self.faults}, {operator}, threshold {self.threshold}"
        circuits = f", circuits of {' and '.join(self.agents)}" if self.circuits else ""
        return text + circuits + (", alone" if self.alone else "")

    def beginning(self) -> World:
        """The order is on its way."""
        world = World(
            now=NOW,
            faults_left=self.faults,
            acts_left=self.acts,
            operator=self.operator,
            may_open=frozenset(self.agents if self.circuits else ()),
            order_id=ORDER_ID,
        )
        return on_its_way(world, SUBMISSION | {"workflow": self.workflow.name})

    @contextmanager
    def running(self) -> Iterator[None]:
        """While this lasts, the services do one thing after another, quietly, by these rules."""
        modules = ("scheduler.service", "supervisor.service", "alerts.service")
        logged = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        slots = {kind: names[:1] for kind, names in SLOTS.items()} if self.alone else SLOTS
        with ExitStack() as patches:
            patches.enter_context(patch("exploration.moves.SLOTS", slots))
            for module in modules:
                patches.enter_context(patch(f"{module}.run_all", one_after_another))
            patches.enter_context(patch("exploration.roles.THRESHOLD", self.threshold))
            patches.enter_context(patch("exploration.roles.OFFERS", {"payment": self.agents}))
            patches.enter_context(patch("exploration.roles.WORKFLOWS", Workflows(self.workflow)))
            try:
                yield
            finally:
                logging.disable(logged)


UNDISTURBED = WorldOf()
GIVEN_UP = WorldOf(faults=1, acts=1, threshold=1)
TRIED_AGAIN = WorldOf(faults=1, acts=1)
CANCELLED = WorldOf(acts=1, operator=("cancel",), workflow=PAIR)
SKIPPED = WorldOf(faults=1, acts=1, operator=("skip",), threshold=1, alone=True)
CIRCUIT = WorldOf(faults=1, circuits=True)
REROUTED = WorldOf(faults=1, circuits=True, agents=("payment", "payment-backup"))
RESTED = WorldOf(faults=1, threshold=1, workflow=RESTING)
THREE_STEPS = WorldOf(faults=1, threshold=1, workflow=IN_SEQUENCE)
TWO_FAULTS = WorldOf(faults=2, threshold=1, workflow=ONE, alone=True)

CIRCUITS = (
    WorldOf(faults=2, circuits=True, threshold=1, agents=("payment", "payment-backup")),
    WorldOf(faults=2, threshold=1, workflow=RESTING),
)
"""In which agents cannot be asked, steps go to others, or rest."""

ALL_ACTS = ("resubmit", "skip", "cancel")

TESTED = (
    UNDISTURBED,
    GIVEN_UP,
    TRIED_AGAIN,
    CANCELLED,
    SKIPPED,
    CIRCUIT,
    REROUTED,
    RESTED,
    THREE_STEPS,
    TWO_FAULTS,
    WorldOf(acts=1, operator=("cancel",), workflow=PARALLEL),
    WorldOf(faults=1, acts=1, operator=("cancel",), workflow=PLAIN, alone=True),
)

EXPLORED = (
    *TESTED,
    *CIRCUITS,
    WorldOf(faults=2, threshold=1),
    WorldOf(faults=2, threshold=1, workflow=ONE),
    WorldOf(faults=2),
    WorldOf(faults=1, threshold=1, workflow=PARALLEL),
    WorldOf(faults=1, threshold=2, workflow=IN_SEQUENCE),
    WorldOf(faults=1, threshold=1, acts=1, workflow=PARALLEL_ERROR),
    WorldOf(faults=2, threshold=1, workflow=PAIR),
    WorldOf(faults=2, acts=1, threshold=1),
    WorldOf(faults=1, acts=2, operator=ALL_ACTS, threshold=1),
    WorldOf(faults=1, acts=1, operator=("cancel",), workflow=PARALLEL),
    WorldOf(faults=2, acts=2, operator=("skip",), threshold=1, workflow=PAIR),
)
