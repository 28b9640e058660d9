"""The sample order of the business: which simulated services it needs, and how it is submitted."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from core.business import Agent, Business, Sample
from core.errors import InvalidError
from core.messages import Submission
from core.orders import OnFailure
from core.workflow import StepDefinition
from simulator.rules import Fault, Match


class Trial(BaseModel):
    """The body of `POST /simulator/sample`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    refuse: Annotated[str, Field(min_length=1, max_length=41)] | None = None
    """The step that its services refuse to do for this order, until that fault is mended."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleStep:
    """One step of the sample order."""

    name: str
    services: Sequence[str]
    """The simulated services that may be asked for it."""
    action: str
    waits: bool
    """Whether an order to which it is refused waits for an operator; others are undone."""

    def refused(self, order_id: str) -> Fault:
        """Return the fault by which it is refused to one order."""
        return Fault(mode="reject", match=Match(order_id=order_id, action=self.action))


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleOrder:
    """The sample order of the business, where all that it takes is simulated."""

    sample: Sample
    steps: Sequence[SampleStep]

    def submission(self, order_id: str, placed_at: datetime) -> Submission:
        """Return the message that submits such an order, as any sender would."""
        payload, workflow = self.sample.payload, self.sample.workflow
        return Submission(
            schema_version=1, order_id=order_id, placed_at=placed_at, workflow=workflow, **payload
        )

    def step(self, name: str) -> SampleStep:
        """Return the step of this name; raises `InvalidError`."""
        found = next((step for step in self.steps if step.name == name), None)
        if found is None:
            raise InvalidError(["refuse: the sample order has no such step"])
        return found


def simulated_agents(addresses: Mapping[str, str]) -> Sequence[str]:
    """Return the agents, of those with these addresses, whose services are simulated."""
    return [
        name
        for name, address in addresses.items()
        if address.rstrip("/").endswith(f"/simulator/{name}")
    ]


def sample_order(
    business: Business, deployed: Sequence[Agent], simulated: Container[str]
) -> SampleOrder | None:
    """Return the sample order; None without one, or if any service that may be asked is real."""
    sample = business.sample
    workflow = sample and business.workflows.latest(sample.workflow or business.default_workflow)
    if not sample or not workflow:
        return None
    steps = [_step(definition, deployed) for definition in workflow.steps]
    services = chain.from_iterable(step.services for step in steps)
    return (
        SampleOrder(sample=sample, steps=steps)
        if all(name in simulated for name in services)
        else None
    )


def _step(definition: StepDefinition, deployed: Sequence[Agent]) -> SampleStep:
    return SampleStep(
        name=definition.name,
        services=[agent.name for agent in deployed if agent.offers == definition.capability],
        action=definition.operation,
        waits=definition.on_failure is not OnFailure.UNDO,
    )
