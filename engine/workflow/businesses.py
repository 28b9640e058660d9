"""Puts workflows, agents and payload together into the application that the engine runs."""

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from engine.declarations.business import AgentDefinition, Application, EndpointDefinition, Sample
from engine.declarations.faults import Fault, FaultCode
from engine.declarations.workflow import DeclarationError, Workflows
from engine.workflow.faults import faults_of
from engine.workflow.model import Model
from engine.workflow.payload import Check, payload_of
from engine.workflow.services import Agent
from engine.workflow.steps import Workflow

Marks = Mapping[str, Callable[[Mapping[str, Any]], Iterable[str]]]


LINE = re.compile(r"[^:]+\.py:\d+: ")
VERSION = re.compile(r" version \d+")
"""Cut out of a fault's place, so that a fault of a step that several versions share is listed once.
"""


def application(
    *workflows: Workflow,
    agents: Sequence[Agent],
    sample: Model | None = None,
    greeting: str = "",
    check: Check[Any] | None = None,
    fault_marks: Marks | None = None,
) -> Application:
    """Make an application of workflows and agents, and check all declarations.

    Orders that name no workflow use the latest version of the first one. `sample` is a payload that
    the pages offer for a first order, and `greeting` a text for people who try the app. `check`
    gets each new payload after its model has accepted it, and may raise `InvalidError`.

    Raises `DeclarationError` with all faults.

        RENTAL = application(rental, agents=[cars], sample=Rental(car="compact"))
    """
    if not workflows:
        raise DeclarationError([Fault(FaultCode.NO_WORKFLOW)])
    faults = [*_of_workflows(workflows), *_of_functions(agents)]
    declared = list(_declared(agents, faults))
    made = Application(
        workflows=_workflows(workflows, faults),
        default_workflow=workflows[0].name,
        agents=tuple(declared),
        payload=payload_of(workflows[0].payload, check),
        endpoints=tuple(_endpoints(workflows)),
        sample=_sample(sample),
        greeting=greeting,
        fault_marks=fault_marks or {},
    )
    unknown = {agent.capability for agent in agents} - {agent.offers for agent in declared}
    found = (fault for fault in _of_engine(made, workflows) if not _is_about(fault, unknown))
    if faults := [*faults, *found]:
        raise _all(faults)
    return made


def _is_about(fault: Fault, capabilities: Container[str]) -> bool:
    """Whether the missing capability is offered by an agent that has faults of its own."""
    is_missing = fault.code is FaultCode.CAPABILITY_NOT_OFFERED
    return is_missing and fault.facts["capability"] in capabilities


def _workflows(workflows: Sequence[Workflow], faults: Sequence[Fault]) -> Workflows:
    try:
        return Workflows(*(workflow.workflow() for workflow in workflows))
    except NameError:  # a fault of a flow, which is among them
        raise _all(faults) from None


def _all(faults: Sequence[Fault]) -> DeclarationError:
    """Make one error of all faults, each listed once even if several versions share its step."""
    seen: dict[tuple[str, Fault], Fault] = {}
    for fault in faults:
        place = VERSION.sub("", fault.place) if LINE.match(fault.place) else fault.place
        seen.setdefault((place, Fault(fault.code, **fault.facts)), fault)
    return DeclarationError(list(seen.values()))


def _of_workflows(workflows: Sequence[Workflow]) -> Iterator[Fault]:
    for workflow in workflows:
        yield from faults_of(workflow)
    yield from _of_several_payloads(workflows)


def _endpoints(workflows: Sequence[Workflow]) -> Iterator[EndpointDefinition]:
    """Yield the endpoint of the latest version of each workflow."""
    latest = {
        workflow.name: workflow
        for workflow in sorted(workflows, key=lambda workflow: workflow.version)
    }
    for workflow in latest.values():
        if workflow.endpoint:
            yield workflow.endpoint.declaration(workflow.name, workflow.payload)


def _of_several_payloads(workflows: Sequence[Workflow]) -> Iterator[Fault]:
    first = workflows[0].payload
    for workflow in workflows:
        if workflow.payload is not first:
            yield Fault(
                FaultCode.PAYLOAD_DIFFERS,
                workflow.place,
                payload=workflow.payload.__name__,
                expected=first.__name__,
            )


def _of_functions(agents: Sequence[Agent]) -> Iterator[Fault]:
    """Yield the faults of activities."""
    for agent in agents:
        offered = {offer.name for offer in agent.operations().values()}
        counted = Counter(function.operation for function in agent.functions)
        for function in agent.functions:
            yield from function.faults()
            place, operation = f"{function.place}: agent {agent.name}", function.operation
            if operation not in offered:
                yield Fault(FaultCode.ACTIVITY_UNKNOWN_OPERATION, place, operation=operation)
            if counted[operation] > 1:
                yield Fault(FaultCode.DUPLICATE_ACTIVITY, place, operation=operation)


def _declared(agents: Sequence[Agent], faults: list[Fault]) -> Iterator[AgentDefinition]:
    """Yield the definitions of the agents. Add the faults of agents that have none to `faults`."""
    for agent in agents:
        try:
            yield agent.declaration()
        except DeclarationError as error:
            faults += error.faults


def _sample(content: Model | None) -> Sample | None:
    return Sample(payload=content.model_dump(mode="json", by_alias=True)) if content else None


def _of_engine(made: Application, workflows: Sequence[Workflow]) -> Iterator[Fault]:
    """Yield the faults that the engine finds, each with the file and line of its step."""
    places = {
        f"{workflow.place}: step {step.name}": step.place
        for workflow in workflows
        for step in workflow.steps
    }
    try:
        made.check(made.agents)
    except DeclarationError as error:
        for fault in error.faults:
            of_step = (at for step, at in places.items() if _is_in(fault, step))
            place = next(of_step, None)
            yield fault.within(place) if place else fault


def _is_in(fault: Fault, place: str) -> bool:
    return f"{fault.place}: ".startswith(f"{place}: ")
