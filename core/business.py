"""What a business declares: what is to be done for an order, by which agents, and what its payload may be."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.errors import InvalidError
from core.messages import SCHEDULER_REQUESTS, STEP_NAME, requests_queue
from core.workflow import DeclarationError, Workflows

MAX_PAYLOAD = 32 * 1024
"""Of a payload as compact JSON, in UTF-16 units: what one property of a table can hold."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Payload:
    """What only the business knows of a payload, a JSON object.

    `check` is asked of what was sent; the others of whatever was recorded, also by another version, so none may raise.
    """

    check: Callable[[Mapping[str, Any]], None]
    """Raises `InvalidError` with all faults; `UnknownNameError` if a newer version of the app may know better."""
    erased: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    """Returns it without personal data; of what is erased already, the same."""
    personal: Callable[[Mapping[str, Any]], Iterable[str]]
    """Returns the values that no log and no history may show."""
    belongs_to: Callable[[Mapping[str, Any], str], bool]
    """Whether the order is that of the person whom an operator looks for."""


PASSING = (408, 425, 429)
"""Statuses by which a service, or a gateway before it, asks to be called again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Agent:
    """One agent, declared once: its queues, its settings and its simulated service follow from it (AGT-1)."""

    name: str
    offers: str
    """What it can be asked for; of several agents that offer the same, the one declared first is preferred (AGT-10)."""
    address: str
    """The setting that holds the address of its service."""
    optional: bool = False
    """Whether the app does without it where that setting says nothing."""
    calls_in_flight: int = 100
    """How many calls its service takes at a time, of all instances together, unless the setting says otherwise."""
    refusals: tuple[int, ...] = ()
    """With which statuses its service refuses for good, besides 422, such as 402 for a card that is declined."""
    provider: str | None = None
    """Name of the provider whose idempotency keys its service shares with others of that provider.

    None: it shares them with nobody.
    """
    refusal: str = "refused"
    """Why its simulated service says no, if told to."""

    def __post_init__(self) -> None:
        """Let no status be declared final that says of itself that it passes, or that is no refusal at all."""
        faults = [
            status for status in self.refusals if not 400 <= status < 500 or status in PASSING
        ]
        if faults:
            raise ValueError(
                f"agent {self.name}: no refusals are {faults}: expected 400 to 499 without {PASSING}"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """An order for people who try the app out, where every service that it needs is simulated."""

    payload: Mapping[str, Any]
    """What a sender says of it that only the business understands; of nobody who exists."""
    workflow: str | None = None
    """None: the default one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Business:
    """One business, as the engine is given it."""

    workflows: Workflows
    """Every workflow, and every version that orders in flight may still be on."""
    default_workflow: str
    """What is done for a submission that names no workflow."""
    agents: Sequence[Agent]
    """Those that carry out the steps."""
    payload: Payload
    sample: Sample | None = None
    fault_marks: Mapping[str, Callable[[Mapping[str, Any]], Iterable[str]]] = field(
        default_factory=dict
    )
    """Whom a fault of a simulated service may be for, besides an order and an action.

    By name, what a request says of it; it is asked of any request, so none of these may raise.
    """

    def check(self, deployed: Sequence[Agent]) -> None:
        """Raise `DeclarationError` with every fault of what is declared, given the agents that this deployment has."""
        faults = [*_faults_of(self.agents), *self.workflows.faults(offers_of(deployed))]
        if self.workflows.latest(self.default_workflow) is None:
            faults.append(f"there is no workflow {self.default_workflow}, which is the default")
        faults += self._faults_of_sample()
        if faults:
            raise DeclarationError(faults)

    def _faults_of_sample(self) -> Iterator[str]:
        if self.sample is None:
            return
        if self.sample.workflow and self.workflows.latest(self.sample.workflow) is None:
            yield f"sample: there is no workflow {self.sample.workflow}"
        try:
            self.payload.check(self.sample.payload)
        except InvalidError as error:
            yield from (f"sample: {fault}" for fault in error.faults)


def _faults_of(agents: Sequence[Agent]) -> Iterator[str]:
    """Yield what is wrong with agents: their names are parts of row keys, queues and functions."""
    for agent in agents:
        if not re.fullmatch(STEP_NAME, agent.name):
            yield f"agent {agent.name}: its name has to match {STEP_NAME}"
        if requests_queue(agent.name) == SCHEDULER_REQUESTS:
            yield f"agent {agent.name}: its queue would be that of the scheduler"
        if not re.fullmatch(STEP_NAME, agent.offers):
            yield f"agent {agent.name}: what it offers, {agent.offers}, has to match {STEP_NAME}"
        if agent.calls_in_flight < 1:
            yield f"agent {agent.name}: calls_in_flight is {agent.calls_in_flight}; it has to be more"
    counted = Counter(agent.name for agent in agents)
    yield from (f"agent {name} is declared twice" for name, count in counted.items() if count > 1)


def offers_of(agents: Sequence[Agent]) -> Mapping[str, Sequence[str]]:
    """Return the agents that offer each capability, the preferred first."""
    offers: dict[str, list[str]] = {}
    for agent in agents:
        offers.setdefault(agent.offers, []).append(agent.name)
    return offers
