"""What is wrong with a workflow as it is written, in its author's words, with file and line."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, get_args, get_origin

from core.errors import InvalidError
from core.messages import Submission
from core.orders import OUTSIDE, Order
from flow import answers
from flow.asking import kind_of, signature_of
from flow.examples import example_of
from flow.model import Model
from flow.payload import is_key, mark_of, models_in
from flow.services import Nothing, Operation
from flow.steps import Flow
from flow.written import Step

Parameter = inspect.Parameter


def faults_of(flow: Flow) -> Iterator[str]:
    """Yield every fault that the compiled definition would not show."""
    yield from (f"payload {flow.payload.__name__}: {each}" for each in _of_payload(flow.payload))
    for step in flow.steps:
        where = f"{step.place}: {flow.name} version {flow.version}: step {step.name}"
        for fault in (*_of_step(flow, step), *_of_answer(step)):
            yield f"{where}: {fault}"


def _of_payload(payload: type[Model]) -> Iterator[str]:
    own = {str(field.alias) for field in Submission.model_fields.values()}
    for name, field in payload.model_fields.items():
        if field.alias in own:
            yield f"field {name}: a submission has a field {field.alias} of its own"
    yield from _without_marks(payload, set())


def _without_marks(model: type[Any], seen: set[type[Any]]) -> Iterator[str]:
    """Yield the fields whose marks nobody would find: models as values of a mapping."""
    if model in seen:
        return
    seen.add(model)
    for name, field in model.model_fields.items():
        inner = models_in(field.annotation)
        if inner and _has_mapping(field.annotation):
            yield f"field {name}: expected a list of {inner[0].__name__} instead of a mapping"
        if is_key(field) and mark_of(field):
            yield f"field {name}: it is personal and a key; a key is shown, and never erased"
        if inner and (mark_of(field) or is_key(field)):
            yield f"field {name}: mark the fields of {inner[0].__name__}, and not the whole of it"
        for each in inner:
            yield from _without_marks(each, seen)


def _has_mapping(annotation: Any) -> bool:
    origin = get_origin(annotation)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return True
    return any(map(_has_mapping, get_args(annotation)))


def _of_step(flow: Flow, step: Step) -> Iterator[str]:
    try:
        signature, *_ = map(signature_of, step.functions)
    except NameError as error:
        yield f"its types cannot be read: {error}"
        return
    yield from _of_function(flow, step, step.make)
    for name, function in step.judges.items():
        yield from (f"{name}: {fault}" for fault in _of_judge(flow, step, name, function))
    yield from _of_operation(step.operation, signature, "it")
    yield from _of_path(step.operation, None)
    if step.operation.capability != OUTSIDE:
        yield from _of_example(step.operation)
    if step.undo:
        yield from _of_operation(step.undo, signature, "its undo")
        yield from _of_path(step.undo, step.operation.answers)
        if step.undo.service is not step.operation.service:
            yield f"its undo is an operation of {step.undo.capability}, another service"
    above = [each.make for each in flow.above(step)]
    for each in step.after:
        if each not in above:
            yield f"it comes after {each.__name__}, which is no step above it"


def _of_answer(step: Step) -> Iterator[str]:
    """Yield the faults of what somebody outside answers."""
    if step.operation.capability == OUTSIDE:
        yield from answers.faults_of(step.operation.answers)


def _of_function(flow: Flow, step: Step, function: Callable[..., Any]) -> Iterator[str]:
    """Yield what is wrong with a function, but for what it returns."""
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        yield "expected a plain function, which returns at once"
    for parameter in signature_of(function).parameters.values():
        yield from _of_parameter(flow, step, function, parameter)


JUDGE = {"when": bool, "begins": datetime}
"""The answers of the functions that judge a step, by field."""


def _of_judge(flow: Flow, step: Step, name: str, function: Callable[..., Any]) -> Iterator[str]:
    """Yield the faults of a function that judges the step."""
    yield from _of_function(flow, step, function)
    expected, returned = JUDGE[name], signature_of(function).return_annotation
    if kind_of(returned)[0] is not expected:
        yield f"its function has to return {expected.__name__}, and returns {_name(returned)}"


def _of_parameter(
    flow: Flow, step: Step, function: Callable[..., Any], parameter: Parameter
) -> Iterator[str]:
    name, kind = parameter.name, parameter.annotation
    if parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
        yield f"expected parameters with names, not {parameter}"
        return
    if parameter.kind is Parameter.POSITIONAL_ONLY:
        yield f"parameter {name}: it cannot be given by its name"
    if kind in (flow.payload, Order):
        return
    before = flow.taken(step, function).get(name)
    if before is None:
        yield (
            f"parameter {name}: it is no step above; "
            f"nor is it the payload, a {flow.payload.__name__}, or an Order"
        )
        return
    model = before.operation.answers
    if model is Nothing:
        yield f"parameter {name}: of the answer of {before.name} nothing is kept"
    elif kind_of(kind)[0] is not model:
        yield f"parameter {name}: {before.name} answers {model.__name__}, not {_name(kind)}"


def _of_operation(
    operation: Operation[Any, Any], signature: inspect.Signature, what: str
) -> Iterator[str]:
    returned = signature.return_annotation
    if operation.service is None:
        yield f"{what} is an operation that no class of agents has"
    if not (isinstance(returned, type) and issubclass(returned, operation.asks)):
        yield (
            f"{what} is {operation.name or 'an operation'}, which asks "
            f"{operation.asks.__name__}; the function returns {_name(returned)}"
        )


def _of_example(operation: Operation[Any, Any]) -> Iterator[str]:
    """Yield the fields of an answer of which a simulated service has no example."""
    try:
        example_of(operation.answers)
    except InvalidError as error:
        for fault in error.faults:
            yield (
                f"the answer of {operation.name}, {operation.answers.__name__}, needs an example, "
                f"such as Field(examples=[...]): {fault}"
            )


OF_EVERY_CALL = ("orderId", "step", "key")
"""The fields that every path can have."""


def _of_path(operation: Operation[Any, Any], result: type[Model] | None) -> Iterator[str]:
    """Yield the fields of a path that its request lacks; that of an undo has a `result`."""
    for field in operation.route.fields:
        first, *more = field.split(".")
        if result is not None and first == "result":
            found = _has(result, more)
        else:
            found = field in OF_EVERY_CALL or _has(operation.asks, [first, *more])
        if not found:
            yield f"the path of {operation.name} has {{{field}}}, which its request lacks"


def _has(model: type[Any], names: Sequence[str]) -> bool:
    """Whether the model has a field of this name, in the models within it."""
    if not names:
        return False
    for name, field in model.model_fields.items():
        if (field.alias or name) == names[0]:
            inner = models_in(field.annotation)
            return not names[1:] or any(_has(each, names[1:]) for each in inner)
    return False


def _name(annotation: Any) -> str:
    if annotation is inspect.Signature.empty:
        return "something of no declared type"
    return str(getattr(annotation, "__name__", annotation))
