"""What the actions on an external event have in common: the step of which it is awaited (ANS-7)."""

from engine.decisions.errors import ActionRefusedError
from engine.decisions.external_event import why_closed
from engine.domain.causes import Cause, Code
from engine.domain.orders import OrderAggregate
from engine.domain.states import PATTERN_STATE, AwaitingExternalEvent
from engine.domain.steps import Step, StepIn


def open_step(order: OrderAggregate, name: str) -> Step:
    """Return the external step of this name if an event to it counts now.

    Raises `ActionRefusedError`.
    """
    step = order.step(name)
    if step is None or not step.is_external:
        external = [step.name for step in order.steps if step.is_external]
        raise ActionRefusedError(Cause(Code.NOT_EXTERNAL, {"step": name, "steps": external}))
    if cause := why_closed(order, step):
        raise ActionRefusedError(cause)
    return step


def awaited_step(order: OrderAggregate, name: str) -> StepIn[AwaitingExternalEvent]:
    """Return the step of this name if its event is awaited now; raises `ActionRefusedError`."""
    step = open_step(order, name)
    for awaited in order.in_state(AwaitingExternalEvent):
        if awaited.name == name:
            return awaited
    facts = {"step": name, "state": str(PATTERN_STATE[type(step.state)])}
    raise ActionRefusedError(Cause(Code.EVENT_NOT_AWAITED_YET, facts))
