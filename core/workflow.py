"""A workflow: the business logic as data, apart from the scheduler that runs it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from core.orders import Order, Policy, Step

Results = Mapping[str, Mapping[str, Any]]
"""What the completed steps answered, by step name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepDefinition:
    """One step: who does it, after what, and what of the order the agent needs to know.

    `allowance` and `threshold` stand for the setting of that name when they are None.
    """

    name: str
    agent: str
    request: Callable[[Order, Results], Mapping[str, Any]]
    after: tuple[str, ...] = ()
    allowance: timedelta | None = None
    threshold: int | None = None
    policy: Policy = Policy.ERROR


@dataclass(frozen=True, kw_only=True, slots=True)
class Workflow:
    """Named, versioned steps; orders in flight finish on the version they started with."""

    name: str
    version: int
    steps: tuple[StepDefinition, ...]

    def definition(self, step: str) -> StepDefinition:
        """Return the definition of a step; raises KeyError for a name that the workflow does not have."""
        return {definition.name: definition for definition in self.steps}[step]

    def initial_steps(self, *, allowance: timedelta, threshold: int) -> tuple[Step, ...]:
        """Return the step records of a new order, with the rules that hold for each copied in."""
        return tuple(
            Step(
                number=number,
                name=definition.name,
                agent=definition.agent,
                allowance=definition.allowance or allowance,
                threshold=definition.threshold or threshold,
                policy=definition.policy,
            )
            for number, definition in enumerate(self.steps)
        )


class Workflows:
    """The workflows that this app knows, by name and version."""

    def __init__(self, *workflows: Workflow) -> None:
        self._known = {(workflow.name, workflow.version): workflow for workflow in workflows}

    def find(self, name: str, version: int) -> Workflow | None:
        """Return the workflow that an order was started with, if this app still has it."""
        return self._known.get((name, version))

    def latest(self, name: str) -> Workflow | None:
        """Return the version that new orders start with."""
        versions = [workflow for (known, _), workflow in self._known.items() if known == name]
        return max(versions, key=lambda workflow: workflow.version, default=None)
