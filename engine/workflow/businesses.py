"""Puts flows, agents and payload together to a business of the engine."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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


def application(
    *flows: Workflow,
    agents: Sequence[Agent],
    sample: Model | None = None,
    greeting: str = "",
    check: Check[Any] | None = None,
    fault_marks: Marks | None = None,
) -> Application:
    """Return the business; raises `DeclarationError` with every fault in what it declares.

    A submission that names no workflow follows the latest version of the first flow. `check` gets
    each new payload that its model allows. Sample and greeting are for people who try the app.
    """
    if not flows:
        raise DeclarationError([Fault(FaultCode.NO_WORKFLOW)])
    faults = [*_of_flows(flows), *_of_functions(agents)]
    declared = list(_declared(agents, faults))
    made = Application(
        workflows=_workflows(flows, faults),
        default_workflow=flows[0].name,
        agents=tuple(declared),
        payload=payload_of(flows[0].payload, check),
        endpoints=tuple(_endpoints(flows)),
        sample=_sample(sample),
        greeting=greeting,
        fault_marks=fault_marks or {},
    )
    if faults := [*faults, *_of_engine(made, flows)]:
        raise _all(faults)
    return made


def _workflows(flows: Sequence[Workflow], faults: Sequence[Fault]) -> Workflows:
    try:
        return Workflows(*(flow.workflow() for flow in flows))
    except NameError:  # a fault of a flow, which is among them
        raise _all(faults) from None


def _all(faults: Sequence[Fault]) -> DeclarationError:
    """Return the error that names each fault once."""
    return DeclarationError(list(dict.fromkeys(faults)))


def _of_flows(flows: Sequence[Workflow]) -> Iterator[Fault]:
    for flow in flows:
        yield from faults_of(flow)
    yield from _of_several_payloads(flows)


def _endpoints(flows: Sequence[Workflow]) -> Iterator[EndpointDefinition]:
    """Yield the endpoints as the engine knows them: those of the latest versions."""
    latest = {flow.name: flow for flow in sorted(flows, key=lambda flow: flow.version)}
    for flow in latest.values():
        if flow.endpoint:
            yield flow.endpoint.declaration(flow.name, flow.payload)


def _of_several_payloads(flows: Sequence[Workflow]) -> Iterator[Fault]:
    first = flows[0].payload
    for flow in flows:
        if flow.payload is not first:
            yield Fault(
                FaultCode.PAYLOAD_DIFFERS,
                flow.place,
                payload=flow.payload.__name__,
                expected=first.__name__,
            )


def _of_functions(agents: Sequence[Agent]) -> Iterator[Fault]:
    """Yield the faults of operations that are functions."""
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
    """Yield the agents as the engine knows them; add the faults of those it cannot know."""
    for agent in agents:
        try:
            yield agent.declaration()
        except DeclarationError as error:
            faults += error.faults


def _sample(content: Model | None) -> Sample | None:
    return Sample(payload=content.model_dump(mode="json", by_alias=True)) if content else None


def _of_engine(made: Application, flows: Sequence[Workflow]) -> Iterator[Fault]:
    """Yield what the engine finds, with the file and line of a step."""
    places = {
        f"{flow.place}: step {step.name}": step.place for flow in flows for step in flow.steps
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
