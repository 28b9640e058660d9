"""External events: the steps of a workflow that wait for a person or another service."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, TypedDict

from pydantic.fields import FieldInfo

from engine.declarations.faults import Fault, FaultCode
from engine.declarations.workflow import ANSWER
from engine.domain import exact_json
from engine.domain.exact_models import as_json
from engine.domain.messages import decode
from engine.domain.steps import StepKind
from engine.domain.submitted_order import EXTERNAL_PARTY, OnFailure
from engine.workflow.model import Model, recorded
from engine.workflow.payload import is_key, mark_of, models_in
from engine.workflow.services import Agent, Operation


class ExternalParty(Agent, capability=EXTERNAL_PARTY):
    """Stands for the sender of external events. An application has no agent of this class."""


class WaitOptions(TypedDict, total=False):
    """The options of `Workflow.wait_for` besides its named arguments. Each has a default."""

    condition: Callable[..., bool]
    start_at: Callable[..., datetime | None]
    on_failure: OnFailure
    cooldown: timedelta
    max_cooldowns: int


def operation_of(event: type[Model]) -> Operation[Any, Any]:
    """Make the operation of a step that waits: any question, and an event of this model."""
    operation: Operation[Any, Any] = Operation(Model, event, name=ANSWER)
    operation.service = ExternalParty
    return operation


def fields_of(event: type[Model]) -> Mapping[str, Any]:
    """Return the fields of the step's definition that follow from the model of its event."""
    return {"kind": StepKind.EXTERNAL, "read_answer": reader(event)}


def reader(model: type[Model]) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """Make the function that checks an event.

    The function raises `InvalidError` if the event is invalid.
    """

    def read(content: Mapping[str, Any]) -> Mapping[str, Any]:
        event = decode(model, exact_json.write(content))
        return _as_it_came(event, content)

    return read


def _as_it_came(event: Model, content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the event as it is kept.

    Numbers keep all the digits that came, even in a float field.
    """
    kept: Mapping[str, Any] = exact_json.with_exact(as_json(event), content)
    return kept


@dataclass(frozen=True, slots=True)
class ReadCallback:
    """Checks the content that a service sends to its callback URL. Unknown fields are allowed."""

    model: type[Model]

    def __call__(self, content: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the answer as it is kept. Raises `InvalidError` with all faults."""
        return _as_it_came(recorded(self.model, content), content)


def marked_in(answer: type[Model]) -> Mapping[str, Any]:
    """Return the fields of a step's definition that name the personal data in its answer."""
    marks = {
        field.alias or name: mark
        for name, field in answer.model_fields.items()
        if (mark := mark_of(field))
    }
    return {
        "personal": tuple(marks),
        "owners": tuple(name for name, mark in marks.items() if mark.owns),
    }


def faults_of(answer: type[Model]) -> Iterator[Fault]:
    """Yield a fault for each mark in an answer that would have no effect."""
    for name, field in answer.model_fields.items():
        inner = models_in(field.annotation)
        if not mark_of(field) and any(map(_has_marks, inner)):
            yield Fault(FaultCode.PERSONAL_INSIDE_FIELD, f"field {name}")
        if is_key(field) or any(map(_has_keys, inner)):
            yield Fault(FaultCode.KEY_IN_ANSWER, f"field {name}")


def _has_marks(model: type[Any]) -> bool:
    return _any_field(model, lambda field: mark_of(field) is not None)


def _has_keys(model: type[Any]) -> bool:
    return _any_field(model, is_key)


def _any_field(model: type[Any], is_one: Callable[[FieldInfo], bool]) -> bool:
    """Whether the condition holds for any field of the model or of the models inside it."""
    seen, left = set[type[Any]](), [model]
    while left:
        fields = (current := left.pop()).model_fields.values()
        seen.add(current)
        if any(map(is_one, fields)):
            return True
        inner = chain.from_iterable(models_in(field.annotation) for field in fields)
        left += [part for part in inner if part not in seen]
    return False
