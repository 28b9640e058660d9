"""The declarations of a business: its workflows, its agents and its payload."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from core.errors import InvalidError
from core.messages import SCHEDULER_REQUESTS, STEP_NAME, requests_queue
from core.orders import Step
from core.workflow import DeclarationError, Workflows

MAX_PAYLOAD = 32 * 1024
"""The longest payload as compact JSON, in UTF-16 units: one property of a table can hold it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Payload:
    """The business's functions on a payload, a JSON object.

    `check` gets new submissions. The others get recorded payloads, even of another version, so they
    may not raise.
    """

    check: Callable[[Mapping[str, Any]], None]
    """Raises `InvalidError` with all faults.

    Raises `UnknownNameError` if a newer version of the app may accept the payload.
    """
    erased: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    """Returns the payload without personal data; an erased one is returned unchanged."""
    personal: Callable[[Mapping[str, Any]], Iterable[str]]
    """Returns the values that no log and no history may show."""
    belongs_to: Callable[[Mapping[str, Any], str], bool]
    """Returns whether the order belongs to the person whom an operator looks for."""


PASSING = (408, 425, 429)
"""Statuses by which a service, or a gateway before it, asks for another call later."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Agent:
    """One agent, from which its queues, settings and simulated service follow (AGT-1)."""

    name: str
    offers: str
    """Its capability; of several agents that share it, the first one is preferred (AGT-10)."""
    address: str
    """The setting that holds the address of its service."""
    optional: bool = False
    """Whether the app runs without the agent if that setting is empty."""
    calls_in_flight: int = 100
    """How many concurrent calls its service takes, from all instances together.

    A setting can replace this number.
    """
    refusals: tuple[int, ...] = ()
    """The statuses of a final refusal, besides 422, such as 402 for a declined card."""
    provider: str | None = None
    """The provider whose services share idempotency keys; None if this service shares none."""
    per_second: float | None = None
    """How many calls a second its service takes, from all instances; None for any number."""
    answer_within: timedelta | None = None
    """How long the service may take for what it answered with 202; None if it never does so."""
    remembers_refusals: bool = False
    """Whether the service repeats a refusal for its idempotency key, whatever has changed since."""
    keys_last: timedelta | None = None
    """How long the service remembers an idempotency key; None for longer than any order takes."""
    refusal: str = "refused"
    """The reason of its simulated service for a refusal."""

    def __post_init__(self) -> None:
        """Refuse statuses that are no refusal, or that may pass."""
        faults = [
            status for status in self.refusals if not 400 <= status < 500 or status in PASSING
        ]
        if faults:
            expected = f"expected 400 to 499 without {PASSING}"
            raise ValueError(f"agent {self.name}: no refusals are {faults}: {expected}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """A sample order for people who try out the app with simulated services."""

    payload: Mapping[str, Any]
    """The fields that only the business understands, without data of a real person."""
    workflow: str | None = None
    """The name of its workflow; None for the default one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Business:
    """The declarations of one business, which the engine runs."""

    workflows: Workflows
    """Every workflow, in every version that orders in flight may still follow."""
    default_workflow: str
    """The workflow of a submission that names none."""
    agents: Sequence[Agent]
    """The agents that carry out the steps."""
    payload: Payload
    sample: Sample | None = None
    fault_marks: Mapping[str, Callable[[Mapping[str, Any]], Iterable[str]]] = field(
        default_factory=dict
    )
    """The marks of a request by which faults of a simulated service can be chosen.

    Each function returns the values of its mark in a request's content. They get any request, so
    they may not raise. Faults can also be chosen by order and by action.
    """

    def check(
        self,
        deployed: Sequence[Agent],
        *,
        timeout: timedelta = timedelta(),
        threshold: int = 1,
        cooldown: timedelta = timedelta(),
    ) -> None:
        """Raise `DeclarationError` with every fault, given the agents of this deployment.

        The others are the settings that hold for steps which do not say otherwise, if known.
        """
        faults = [*_faults_of(self.agents), *self.workflows.faults(offers_of(deployed))]
        for workflow in self.workflows.all:
            steps = workflow.initial_steps(timeout=timeout, threshold=threshold, cooldown=cooldown)
            which = f"{workflow.name} version {workflow.version}"
            faults += [f"{which}: {fault}" for fault in _outlasting_keys(steps, deployed)]
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
    """Yield the faults of agents, whose names are parts of row keys, queues and functions."""
    for agent in agents:
        if not re.fullmatch(STEP_NAME, agent.name):
            yield f"agent {agent.name}: its name has to match {STEP_NAME}"
        if requests_queue(agent.name) == SCHEDULER_REQUESTS:
            yield f"agent {agent.name}: its queue would be that of the scheduler"
        if not re.fullmatch(STEP_NAME, agent.offers):
            yield f"agent {agent.name}: what it offers, {agent.offers}, has to match {STEP_NAME}"
        if agent.calls_in_flight < 1:
            calls = agent.calls_in_flight
            yield f"agent {agent.name}: calls_in_flight is {calls}; it has to be more"
        yield from _faults_of_times(agent)
    counted = Counter(agent.name for agent in agents)
    yield from (f"agent {name} is declared twice" for name, count in counted.items() if count > 1)


def _faults_of_times(agent: Agent) -> Iterator[str]:
    """Yield the faults of the times that an agent declares of its service."""
    for name in ("answer_within", "keys_last"):
        time = getattr(agent, name)
        if time is not None and time <= timedelta():
            yield f"agent {agent.name}: {name} is {time}; it has to be more"
    within, last = agent.answer_within, agent.keys_last
    if within and last and within > last:
        yield f"agent {agent.name}: answer_within is {within}; it forgets a key after {last}"


def _outlasting_keys(steps: Sequence[Step], agents: Sequence[Agent]) -> Iterator[str]:
    """Yield a fault for each time after which a service may have forgotten a step's key."""
    for step in steps:
        tries = step.timeout * step.threshold
        waits = {"cooldown": step.cooldown, f"{step.threshold} attempts": tries}
        for agent in agents:
            if agent.offers != step.capability or agent.keys_last is None:
                continue
            forgets = f"{agent.name} forgets a key after {agent.keys_last}"
            long = {what: time for what, time in waits.items() if time > agent.keys_last}
            for what, time in long.items():
                yield f"step {step.name}: its {what} may take {time}; {forgets}"


def offers_of(agents: Sequence[Agent]) -> Mapping[str, Sequence[str]]:
    """Return the agents that offer each capability, the preferred first."""
    offers: dict[str, list[str]] = {}
    for agent in agents:
        offers.setdefault(agent.offers, []).append(agent.name)
    return offers
