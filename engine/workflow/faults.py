"""Finds the faults of a workflow as its author wrote it, each with its file and line."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, get_args, get_origin

from engine.declarations.faults import Fault, FaultCode
from engine.domain.errors import InvalidError
from engine.domain.messages import Submission
from engine.domain.submitted_order import OnFailure, Order
from engine.workflow import external_events
from engine.workflow.binding import kind_of, signature_of
from engine.workflow.code import type_name
from engine.workflow.examples import example_of
from engine.workflow.model import Model
from engine.workflow.payload import is_key, mark_of, models_in
from engine.workflow.services import Nothing, Operation
from engine.workflow.steps import Workflow
from engine.workflow.written import Step

Parameter = inspect.Parameter


def faults_of(workflow: Workflow) -> Iterator[Fault]:
    """Yield the faults that cannot be found in the compiled definition."""
    payload = f"payload {workflow.payload.__name__}"
    yield from (fault.within(payload) for fault in _of_payload(workflow.payload))
    yield from (fault.within(workflow.place) for fault in workflow.faults)
    for step in workflow.steps:
        place = f"{step.place}: {workflow.place}: step {step.name}"
        faults = (*step.faults, *_of_step(workflow, step), *_of_answer(step))
        for fault in (*faults, *_of_undoing(workflow, step)):
            yield fault.within(place)


def _of_undoing(workflow: Workflow, step: Step) -> Iterator[Fault]:
    """Yield a fault for a policy with nothing to undo, and for an undo never reached (UND-6)."""
    if step.rules.get("on_failure") is OnFailure.UNDO and not any(
        written.undo for written in workflow.steps
    ):
        yield Fault(FaultCode.NOTHING_TO_UNDO)
    if step.undo is None:
        return
    try:
        before = workflow.all_before(step)
    except NameError:  # a fault of its own
        return
    for pivot in (step, *before):
        if pivot.rules.get("pivot") and (pivot is step or not pivot.may_be_skipped):
            yield Fault(FaultCode.UNDO_NEVER_REACHED, step=pivot.name)


def _of_payload(payload: type[Model]) -> Iterator[Fault]:
    own = {str(field.alias) for field in Submission.model_fields.values()}
    for name, field in payload.model_fields.items():
        if field.alias in own:
            yield Fault(FaultCode.FIELD_RESERVED, f"field {name}", field=field.alias)
    yield from _without_marks(payload, set())


def _without_marks(model: type[Any], seen: set[type[Any]]) -> Iterator[Fault]:
    """Yield a fault for each mark without an effect, and for each float that holds money."""
    if model in seen:
        return
    seen.add(model)
    for name, field in model.model_fields.items():
        place, inner = f"field {name}", models_in(field.annotation)
        if inner and _has_mapping(field.annotation):
            yield Fault(FaultCode.MODEL_IN_MAPPING, place, model=inner[0].__name__)
        if is_key(field) and mark_of(field):
            yield Fault(FaultCode.PERSONAL_KEY, place)
        if _is_money(name, model) and _has_float(field.annotation):
            yield Fault(FaultCode.FLOAT_FOR_MONEY, place)
        if inner and (mark_of(field) or is_key(field)):
            yield Fault(FaultCode.MARK_ON_MODEL, place, model=inner[0].__name__)
        for part in inner:
            yield from _without_marks(part, seen)


MONEY = {"cost", "costs", "fare", "fee", "fees", "price", "salary"}
"""A field whose name ends with one of these words holds money."""


PERHAPS_MONEY = {"amount", "sum", "total", "value"}


def _is_money(name: str, model: type[Any]) -> bool:
    """Whether a field of this name holds money. An `amount` beside a `currency` does, too."""
    word = name.rpartition("_")[2]
    return word in MONEY or (word in PERHAPS_MONEY and "currency" in model.model_fields)


def _has_float(annotation: Any) -> bool:
    return annotation is float or any(map(_has_float, get_args(annotation)))


def _has_mapping(annotation: Any) -> bool:
    origin = get_origin(annotation)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return True
    return any(map(_has_mapping, get_args(annotation)))


def _of_step(workflow: Workflow, step: Step) -> Iterator[Fault]:
    try:
        signature, *_ = map(signature_of, step.functions)
    except NameError as error:
        yield Fault(FaultCode.TYPES_UNREADABLE, message=str(error))
        return
    yield from _of_function(workflow, step, step.make)
    for name, function in step.conditions.items():
        yield from (fault.within(name) for fault in _of_condition(workflow, step, name, function))
    yield from _of_operation(step.operation, signature)
    yield from _of_path(step.operation, None)
    if not step.is_external:
        yield from _of_example(step.operation)
    if step.undo:
        yield from (fault.within("undo") for fault in _of_undo(step, step.undo, signature))
    above = {written.make.__name__: written.make for written in workflow.above(step)}
    for make in step.after:
        if not callable(make):
            name = str(make).replace("-", "_")
            yield Fault(FaultCode.AFTER_NOT_A_FUNCTION, step=str(make)).like(name, above)
        elif make not in above.values():
            yield Fault(FaultCode.NOT_ABOVE, step=make.__name__)


RESULT = "result"
"""The field of an undo's request that holds the recorded answer of its step (UND-3)."""


def _of_undo(
    step: Step, undo: Operation[Any, Any], signature: inspect.Signature
) -> Iterator[Fault]:
    yield from _of_operation(undo, signature)
    for model in dict.fromkeys((step.operation.request, undo.request)):
        if any(field.alias == RESULT for field in model.model_fields.values()):
            yield Fault(FaultCode.REQUEST_FIELD_RESERVED, model=model.__name__, field=RESULT)
    yield from _of_path(undo, step.operation.response)
    if undo.service is not step.operation.service:
        yield Fault(FaultCode.UNDO_BY_OTHER_SERVICE, capability=undo.capability)


def _of_answer(step: Step) -> Iterator[Fault]:
    """Yield the faults of the model of a step's answer."""
    faults = external_events.faults_of(step.operation.response)
    yield from (fault.within("answer") for fault in faults)


def _of_function(workflow: Workflow, step: Step, function: Callable[..., Any]) -> Iterator[Fault]:
    """Yield the faults of a function, except those of its return type."""
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        yield Fault(FaultCode.NOT_PLAIN_FUNCTION)
    for parameter in signature_of(function).parameters.values():
        faults = _of_parameter(workflow, step, function, parameter)
        yield from (fault.within(f"parameter {parameter.name}") for fault in faults)


CONDITION_RETURNS = {"condition": bool, "start_at": datetime}
"""The return types of the functions that decide whether and when a step starts, by option."""


def _of_condition(
    workflow: Workflow, step: Step, name: str, function: Callable[..., Any]
) -> Iterator[Fault]:
    """Yield the faults of a `condition` or `start_at` function."""
    yield from _of_function(workflow, step, function)
    expected, returned = CONDITION_RETURNS[name], signature_of(function).return_annotation
    if kind_of(returned)[0] is not expected:
        yield Fault(FaultCode.RETURN_TYPE, expected=expected.__name__, returned=type_name(returned))


def _of_parameter(
    workflow: Workflow, step: Step, function: Callable[..., Any], parameter: Parameter
) -> Iterator[Fault]:
    name, kind = parameter.name, parameter.annotation
    if parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
        yield Fault(FaultCode.PARAMETER_WITHOUT_NAME)
        return
    if parameter.kind is Parameter.POSITIONAL_ONLY:
        yield Fault(FaultCode.PARAMETER_WITHOUT_NAME)
    if kind in (workflow.payload, Order):
        return
    before = workflow.taken(step, function).get(name)
    if before is None:
        above = [written.make.__name__ for written in workflow.above(step)]
        fault = Fault(FaultCode.PARAMETER_UNKNOWN, payload=workflow.payload.__name__)
        yield fault.like(name, above)
        return
    model = before.operation.response
    if model is Nothing:
        yield Fault(FaultCode.PARAMETER_OF_NOTHING, step=before.name)
    elif kind_of(kind)[0] is not model:
        yield Fault(
            FaultCode.PARAMETER_TYPE,
            step=before.name,
            expected=model.__name__,
            declared=type_name(kind),
        )


def _of_operation(operation: Operation[Any, Any], signature: inspect.Signature) -> Iterator[Fault]:
    returned = signature.return_annotation
    if operation.service is None:
        yield Fault(FaultCode.OPERATION_WITHOUT_CLASS)
    if not (isinstance(returned, type) and issubclass(returned, operation.request)):
        yield Fault(
            FaultCode.OPERATION_REQUEST,
            expected=operation.request.__name__,
            returned=type_name(returned),
        )


def _of_example(operation: Operation[Any, Any]) -> Iterator[Fault]:
    """Yield the fields of an answer for which a simulated service has no example."""
    try:
        example_of(operation.response)
    except InvalidError as error:
        for message in error.faults:
            yield Fault(
                FaultCode.EXAMPLE_MISSING,
                operation=operation.name,
                model=operation.response.__name__,
                message=str(message),
            )


OF_EVERY_CALL = ("orderId", "step", "key")
"""The fields that every path can use."""


def _of_path(operation: Operation[Any, Any], result: type[Model] | None) -> Iterator[Fault]:
    """Yield the fields of a path that the request lacks. Paths of an undo can use `result`, too."""
    for field in operation.route.fields:
        first, *more = field.split(".")
        if result is not None and first == "result":
            found = _has(result, more)
        else:
            found = field in OF_EVERY_CALL or _has(operation.request, [first, *more])
        if not found:
            yield Fault(
                FaultCode.PATH_FIELD_UNKNOWN, operation=operation.name, field=f"{{{field}}}"
            )


def _has(model: type[Any], names: Sequence[str]) -> bool:
    """Whether the model has the nested field with this path of names."""
    if not names:
        return False
    for name, field in model.model_fields.items():
        if (field.alias or name) == names[0]:
            inner = models_in(field.annotation)
            return not names[1:] or any(_has(part, names[1:]) for part in inner)
    return False
