"""Calls the functions of a workflow with what their parameters name."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import Signature
from itertools import chain
from types import NoneType
from typing import Any, get_args

from engine.declarations.workflow import Results
from engine.domain.exact_models import as_json
from engine.domain.submitted_order import Order
from engine.workflow.model import Model, recorded


@dataclass(frozen=True, kw_only=True, slots=True)
class ResultParameter:
    """A parameter that takes the answer of a step."""

    step: str
    model: type[Model]
    may_lack: bool
    """Whether it takes None if the step was skipped."""

    def of(self, results: Results) -> Model | None:
        """Return the answer; raises `InvalidError` for values that its model does not allow."""
        if self.may_lack and self.step not in results:
            return None
        return recorded(self.model, results.get(self.step, {}))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class BoundFunction:
    """A function, and what its parameters take from the recorded order and results."""

    function: Callable[..., Any]
    order: Sequence[str]
    """The parameters that take the order."""
    payload: Mapping[str, type[Model]]
    """The parameters that take its payload, and the model of it."""
    answers: Mapping[str, ResultParameter]

    @property
    def __name__(self) -> str:
        """The name of the function, which operators read."""
        return str(getattr(self.function, "__name__", self.function))

    def __call__(self, order: Order, results: Results) -> Any:
        """Call the function; raises `InvalidError` for values that their models do not allow."""
        values: dict[str, Any] = dict.fromkeys(self.order, order)
        values |= {name: recorded(model, order.payload) for name, model in self.payload.items()}
        values |= {name: answer.of(results) for name, answer in self.answers.items()}
        return self.function(**values)


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """Makes the content of a step's request."""

    function: BoundFunction

    def __call__(self, order: Order, results: Results) -> Mapping[str, Any]:
        """Return the content; raises `InvalidError` as `BoundFunction` does."""
        content: Model = self.function(order, results)
        return as_json(content)


def bind(
    function: Callable[..., Any],
    payload: type[Model],
    answers: Mapping[str, tuple[str, type[Model]]],
) -> BoundFunction:
    """Return the function with what it takes; `answers` are the step and model by parameter."""
    parameters = signature_of(function).parameters
    typed = {name: parameter.annotation for name, parameter in parameters.items()}
    return BoundFunction(
        function=function,
        order=[name for name, kind in typed.items() if kind is Order],
        payload={name: kind for name, kind in typed.items() if kind is payload},
        answers={
            name: ResultParameter(step=step, model=model, may_lack=kind_of(typed[name])[1])
            for name, (step, model) in answers.items()
        },
    )


def used_by(functions: Sequence[BoundFunction]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the steps whose answers functions take, and those that all take None for."""
    answers = list(chain.from_iterable(function.answers.values() for function in functions))
    needed = {answer.step for answer in answers if not answer.may_lack}
    uses = tuple(dict.fromkeys(answer.step for answer in answers))
    return uses, tuple(name for name in uses if name not in needed)


@cache
def signature_of(function: Callable[..., Any]) -> Signature:
    """Return the function's parameters and result; raises NameError for unknown names in quotes."""
    return inspect.signature(function, eval_str=True)


def kind_of(annotation: Any) -> tuple[Any, bool]:
    """Return what a parameter takes, such as a model, and whether it also takes None."""
    kinds = get_args(annotation)
    others = [kind for kind in kinds if kind is not NoneType]
    if len(others) == 1 < len(kinds):
        return others[0], True
    return annotation, False
