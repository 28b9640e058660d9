"""What an agent is asked: made by the order's workflow, which is other people's code and may fail."""

import re
import traceback
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from core.business import Payload
from core.errors import AppError, InvalidError
from core.messages import AgentRequest, BusMessage, faults_of
from core.orders import ERASED, Snapshot, Step, StepState
from core.texts import plain
from core.workflow import StepDefinition, Workflow

MAX_BYTES = 192 * 1024
"""Of a request; Service Bus carries 256 KiB, with all that it adds."""

MAX_TOLD = 200
"""Characters of what an error says."""

NAMES_CODE = (LookupError, AttributeError, NameError, TypeError, ArithmeticError, AppError)
"""What these say names something in the code, such as a key; other errors repeat the values that they met."""


class BrokenRequestError(AppError):
    """The workflow cannot make the request of a step; what it says is fit to be shown."""


def request_of(order: Snapshot, step: Step, workflow: Workflow, payload: Payload, issued_at: datetime) -> BusMessage:
    """Return the request of an attempt that begins now; raises `BrokenRequestError`."""
    name = f"{workflow.name} v{workflow.version}"
    definition = workflow.definition(step.name)
    if definition is None:
        raise BrokenRequestError(no_such_step(workflow, step.name))
    try:
        return _request(order, step, definition, issued_at)
    except Exception as error:  # whatever a workflow raises, its step has failed
        told = _told(error, payload.personal(order.order.payload))
        raise BrokenRequestError(f"{name}, step {step.name}: request failed: {told}") from error


def no_such_step(workflow: Workflow, step: str) -> str:
    """Say that an order is at a step that its workflow does not have any more."""
    return f"{workflow.name} v{workflow.version} has no step {step}: it was changed while this order was on it"


def _request(order: Snapshot, step: Step, definition: StepDefinition, issued_at: datetime) -> BusMessage:
    used = (each for each in order.steps if each.name in definition.uses)
    results = {each.name: each.result for each in used if each.result is not None}
    content = definition.request(order.order, results)
    undo = step.state is StepState.UNDOING
    message = AgentRequest(
        order_id=order.order_id,
        step=step.name,
        action="undo" if undo else "do",
        operation=(definition.compensation or "") if undo else definition.operation,
        attempt=step.attempts,
        idempotency_key=f"{order.order_id}:{step.name}",  # the same for every attempt, and for the undo (AGT-3)
        issued_at=issued_at,
        complete_by=issued_at + step.timeout,
        content={**content, "result": step.result or {}} if undo else content,
    ).to_bus(step.agent, time_to_live=step.timeout)
    if (size := len(message.body.encode())) > MAX_BYTES:
        raise InvalidError([f"it has {size} bytes; a message carries {MAX_BYTES}"])
    return message


def _told(error: Exception, personal: Iterable[str]) -> str:
    """Return the kind of the error, and what it says or else where it was raised: nothing personal."""
    if isinstance(error, ValidationError):
        says = "; ".join(faults_of(error))
    elif isinstance(error, NAMES_CODE):
        says = str(error)
    else:
        place = traceback.extract_tb(error.__traceback__)[-1]
        says = f"at {Path(place.filename).name}, line {place.lineno}"
    return plain(f"{type(error).__name__} {_without(personal, says)}", MAX_TOLD)


def _without(personal: Iterable[str], text: str) -> str:
    """Return the text without these values; of two that begin alike the longer one goes first."""
    values = "|".join(re.escape(value) for value in sorted(personal, key=len, reverse=True) if value)
    return re.sub(rf"(?<!\w)(?:{values})(?!\w)", ERASED, text, flags=re.IGNORECASE) if values else text
