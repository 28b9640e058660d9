"""Binds an author's functions to the order, its payload and the answers of steps."""

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
    """Whether the parameter is None if the step was skipped."""

    def of(self, results: Results) -> Model | None:
        """Return the answer as a model.

        If the step was skipped and the parameter allows None, it is None.

        Raises `InvalidError` if the recorded answer does not fit the model.
        """
        if self.may_lack and self.step not in results:
            return None
        return recorded(self.model, results.get(self.step, {}))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class BoundFunction:
    """A function of the author, with the source of each of its parameters."""

    function: Callable[..., Any]
    order: Sequence[str]
    """The names of the parameters that take the order."""
    payload: Mapping[str, type[Model]]
    """The parameters that take the payload, with its model."""
    answers: Mapping[str, ResultParameter]

    @property
    def __name__(self) -> str:
        # Operators read this name.
        return str(getattr(self.function, "__name__", self.function))

    def __call__(self, order: Order, results: Results) -> Any:
        """Call the function with the recorded order and results.

        Raises `InvalidError` if a recorded value does not fit its model.
        """
        values: dict[str, Any] = dict.fromkeys(self.order, order)
        values |= {name: recorded(model, order.payload) for name, model in self.payload.items()}
        values |= {name: answer.of(results) for name, answer in self.answers.items()}
        return self.function(**values)


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """Makes the content of a step's request."""

    function: BoundFunction

    def __call__(self, order: Order, results: Results) -> Mapping[str, Any]:
        """Make the content as JSON.

        Raises `InvalidError` if a recorded value does not fit its model.
        """
        content: Model = self.function(order, results)
        return as_json(content)


def bind(
    function: Callable[..., Any],
    payload: type[Model],
    answers: Mapping[str, tuple[str, type[Model]]],
) -> BoundFunction:
    """Find the source of each parameter.

    `answers` maps a parameter to its step and the model of its answer.
    """
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
    """Return the names of the steps whose answers are used, and of those that may be missing.

    The answer of a step may be missing if every parameter for it allows None.
    """
    answers = list(chain.from_iterable(function.answers.values() for function in functions))
    needed = {answer.step for answer in answers if not answer.may_lack}
    uses = tuple(dict.fromkeys(answer.step for answer in answers))
    return uses, tuple(name for name in uses if name not in needed)


@cache
def signature_of(function: Callable[..., Any]) -> Signature:
    """Return the signature with evaluated annotations.

    Raises NameError for an unknown name in a quoted annotation.
    """
    return inspect.signature(function, eval_str=True)


def kind_of(annotation: Any) -> tuple[Any, bool]:
    """Split `T | None` into T and True. Any other annotation comes with False."""
    kinds = get_args(annotation)
    others = [kind for kind in kinds if kind is not NoneType]
    if len(others) == 1 < len(kinds):
        return others[0], True
    return annotation, False
