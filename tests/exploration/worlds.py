"""The named worlds."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import workflows
from core.orders import Policy
from core.workflow import StepDefinition, Workflow, Workflows
from exploration.driving import one_after_another
from exploration.moves import beginning
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


def _step(name: str, *after: str, policy: Policy = Policy.UNDO) -> StepDefinition:
    """A step that can be undone; one agent does them all."""
    return StepDefinition(
        name=name, agent="payment", does="do", undone_by="undo", request=_nothing, after=after, policy=policy
    )


SINGLE = workflows.ALL.latest("payment-only")
IN_SEQUENCE = Workflow(name="in-sequence", version=1, steps=(_step("a"), _step("b", "a"), _step("c", "b")))
ONE = Workflow(name="one", version=1, steps=(_step("a"),))
PAIR = Workflow(name="pair", version=1, steps=(_step("a"), _step("b", "a")))
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

    def __str__(self) -> str:
        operator = f"{' or '.join(self.operator)} {self.acts}"
        return f"{self.workflow.name}, faults {self.faults}, {operator}, threshold {self.threshold}"

    def beginning(self) -> World:
        """The order is on its way."""
        submission = SUBMISSION | {"workflow": self.workflow.name}
        return beginning(self.faults, self.acts, self.operator, submission, NOW)

    @contextmanager
    def running(self) -> Iterator[None]:
        """While this lasts, the services do one thing after another, quietly, by these rules."""
        modules = ("scheduler.service", "supervisor.service", "alerts.service")
        logged = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        with ExitStack() as patches:
            for module in modules:
                patches.enter_context(patch(f"{module}.run_all", one_after_another))
            patches.enter_context(patch("exploration.roles.THRESHOLD", self.threshold))
            patches.enter_context(patch("exploration.roles.WORKFLOWS", Workflows(self.workflow)))
            yield
        logging.disable(logged)


SMALL = (
    WorldOf(),
    WorldOf(faults=1, acts=1, threshold=1),
    WorldOf(faults=1, acts=1),
    WorldOf(acts=1, operator=("cancel",), workflow=PAIR),
    WorldOf(faults=1, acts=1, operator=("skip",), threshold=1),
    WorldOf(faults=1, threshold=1, workflow=IN_SEQUENCE),
    WorldOf(faults=2, threshold=1, workflow=ONE),
)
"""In which a planted fault shows soon, the smallest first."""

ALL_ACTS = ("resubmit", "skip", "cancel")

TESTED = (
    *SMALL[:6],
    WorldOf(faults=2, threshold=1),
    WorldOf(acts=1, operator=("cancel",), workflow=PARALLEL),
)

EXPLORED = (
    *TESTED,
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
