"""External events: what a workflow waits for, as its author declares it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypedDict

from engine.declarations.faults import Fault, FaultCode
from engine.declarations.workflow import ANSWER
from engine.domain.messages import decode, json_text
from engine.domain.steps import StepKind
from engine.domain.submitted_order import EXTERNAL_PARTY, OnFailure
from engine.workflow.model import Model, recorded
from engine.workflow.payload import mark_of, models_in
from engine.workflow.services import Agent, Operation


class ExternalParty(Agent, capability=EXTERNAL_PARTY):
    """Stands for the sender of external events; no agent of an application is one."""


class WaitOptions(TypedDict, total=False):
    """The rules of a step that an external event completes; what is left out has its default."""

    condition: Callable[..., bool]
    start_at: Callable[..., datetime | None]
    on_failure: OnFailure
    cooldown: timedelta
    max_cooldowns: int


def operation_of(event: type[Model]) -> Operation[Any, Any]:
    """Return the operation of such a step: any question, and an event of this model."""
    operation: Operation[Any, Any] = Operation(Model, event, name=ANSWER)
    operation.service = ExternalParty
    return operation


def fields_of(event: type[Model]) -> Mapping[str, Any]:
    """Return the fields of a definition by which an event of this model completes the step."""
    personal = (field.alias or name for name, field in event.model_fields.items() if mark_of(field))
    return {
        "kind": StepKind.EXTERNAL,
        "read_answer": reader(event),
        "personal": tuple(personal),
    }


def reader(event: type[Model]) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """Return the check of an event of this model, which raises `InvalidError`."""

    def read(content: Mapping[str, Any]) -> Mapping[str, Any]:
        return decode(event, json_text(content)).model_dump(mode="json", by_alias=True)

    return read


@dataclass(frozen=True, slots=True)
class ReadCallback:
    """Checks what a service sends to its callback address; it may have further fields."""

    model: type[Model]

    def __call__(self, content: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the answer as it is kept; raises `InvalidError` with every fault."""
        return recorded(self.model, content).model_dump(mode="json", by_alias=True)


def faults_of(event: type[Model]) -> Iterator[Fault]:
    """Yield the personal data in an event that an erasure would not find."""
    for name, field in event.model_fields.items():
        inner = models_in(field.annotation)
        if not mark_of(field) and any(map(_has_marks, inner)):
            yield Fault(FaultCode.PERSONAL_INSIDE_FIELD, f"field {name}")


def _has_marks(model: type[Any]) -> bool:
    fields = model.model_fields.values()
    return any(
        mark_of(field) or any(map(_has_marks, models_in(field.annotation))) for field in fields
    )
