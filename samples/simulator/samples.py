"""The sample order of the business: its steps, its simulated services and its submission."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from engine.declarations.business import AgentDefinition, Application, Sample, is_simulated
from engine.declarations.workflow import StepDefinition
from engine.domain.errors import InvalidError
from engine.domain.messages import Submission
from engine.domain.submitted_order import OnFailure
from samples.simulator.rules import Match, SimulatedFault


class SampleRequest(BaseModel):
    """The body of `POST /simulator/sample`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    refuse: Annotated[str, Field(min_length=1, max_length=41)] | None = None
    """The services refuse this step for this order, until the fault is removed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleStep:
    """A step of the sample order."""

    name: str
    services: Sequence[str]
    """The simulated services that may receive the step's request."""
    action: str
    waits: bool
    """Whether an order waits for an operator after a refusal of this step. Otherwise it is undone.
    """

    def refused(self, order_id: str) -> SimulatedFault:
        """Return the fault that makes services refuse the step for one order."""
        return SimulatedFault(mode="reject", match=Match(order_id=order_id, action=self.action))


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleOrder:
    """The sample order of the business, if all services that it needs are simulated."""

    sample: Sample
    steps: Sequence[SampleStep]

    def submission(self, order_id: str, placed_at: datetime) -> Submission:
        """Make the submission message of a sample order, in the form of any sender."""
        payload, workflow = self.sample.payload, self.sample.workflow
        return Submission(
            schema_version=1, order_id=order_id, placed_at=placed_at, workflow=workflow, **payload
        )

    def step(self, name: str) -> SampleStep:
        """Return the step with this name. Raises `InvalidError` if there is none."""
        found = next((step for step in self.steps if step.name == name), None)
        if found is None:
            raise InvalidError(["refuse: the sample order has no such step"])
        return found


def simulated_agents(addresses: Mapping[str, str]) -> Sequence[str]:
    """Return the agents whose addresses lead to simulated services."""
    return [name for name, address in addresses.items() if is_simulated(name, address)]


def sample_order(
    business: Application, deployed: Sequence[AgentDefinition], simulated: Container[str]
) -> SampleOrder | None:
    """Return the sample order. None if there is none, or if one of its services is real."""
    sample = business.sample
    workflow = sample and business.workflows.latest(sample.workflow or business.default_workflow)
    if not sample or not workflow:
        return None
    steps = [_step(definition, deployed) for definition in workflow.steps]
    services = set(chain.from_iterable(step.services for step in steps))
    # Activities run themselves, so nothing simulates them.
    code = {agent.name for agent in deployed if agent.code}  # it runs, and nobody plays it
    if code & services or not all(name in simulated for name in services):
        return None
    return SampleOrder(sample=sample, steps=steps)


def _step(definition: StepDefinition, deployed: Sequence[AgentDefinition]) -> SampleStep:
    return SampleStep(
        name=definition.name,
        services=[agent.name for agent in deployed if agent.offers == definition.capability],
        action=definition.operation,
        waits=definition.on_failure not in (OnFailure.UNDO, OnFailure.CONTINUE),
    )
