"""Calls the functions of a workflow with what their parameters name."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, get_args

from core.orders import Order
from core.workflow import Results
from flow.model import Model, recorded


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
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
class Asked:
    """A function, and what its parameters take from the recorded order and results."""

    function: Callable[..., Any]
    order: Sequence[str]
    """The parameters that take the order."""
    payload: Mapping[str, type[Model]]
    """The parameters that take its payload, and the model of it."""
    answers: Mapping[str, Answer]

    def __call__(self, order: Order, results: Results) -> Any:
        """Call the function; raises `InvalidError` for values that their models do not allow."""
        values: dict[str, Any] = dict.fromkeys(self.order, order)
        values |= {name: recorded(model, order.payload) for name, model in self.payload.items()}
        values |= {name: answer.of(results) for name, answer in self.answers.items()}
        return self.function(**values)


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """Makes the content of a step's request."""

    asked: Asked

    def __call__(self, order: Order, results: Results) -> Mapping[str, Any]:
        """Return the content; raises `InvalidError` as `Asked` does."""
        content: Model = self.asked(order, results)
        return content.model_dump(mode="json", by_alias=True)


def kind_of(annotation: Any) -> tuple[Any, bool]:
    """Return what a parameter takes, such as a model, and whether it also takes None."""
    kinds = get_args(annotation)
    others = [each for each in kinds if each is not NoneType]
    if len(others) == 1 < len(kinds):
        return others[0], True
    return annotation, False
