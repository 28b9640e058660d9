"""A step as its author wrote it: its function, and the options of its decorator."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from engine.declarations.faults import Fault
from engine.domain.steps import StepKind
from engine.domain.submitted_order import OnFailure
from engine.workflow.model import Model
from engine.workflow.services import Operation, dashed

Ask = TypeVar("Ask", bound=Model)
Make = Callable[..., Ask]
"""The function that makes the request of a step."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step as its author wrote it."""

    make: Make[Model]
    operation: Operation[Any, Any]
    undo: Operation[Any, Any] | None
    after: Sequence[Make[Model]]
    """Steps that come before this one although it does not use their answers."""
    rules: Mapping[str, Any]
    """Other fields of the step's definition."""
    conditions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """The `condition` and `start_at` functions, by option."""
    faults: Sequence[Fault] = ()
    """The faults of the step's options. Options with a fault are not in `rules`."""

    @property
    def is_external(self) -> bool:
        return self.rules.get("kind") is StepKind.EXTERNAL

    @property
    def may_be_skipped(self) -> bool:
        """Whether an order may continue without the step, by the rules of the workflow."""
        return self.rules.get("on_failure") is OnFailure.CONTINUE or "condition" in self.conditions

    @cached_property
    def name(self) -> str:
        """The name of the function with dashes, such as `check-in` for `check_in`."""
        return dashed(self.make.__name__)

    @cached_property
    def title(self) -> str:
        """The first line of the function's docstring, which operators read beside the name."""
        return (inspect.getdoc(self.make) or "").partition("\n")[0].removesuffix(".")

    @cached_property
    def place(self) -> str:
        """The file and line of the function."""
        code = self.make.__code__
        return f"{Path(code.co_filename).name}:{code.co_firstlineno}"

    @property
    def functions(self) -> Sequence[Callable[..., Any]]:
        """All functions of the step."""
        return [self.make, *self.conditions.values()]

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The names of the answer's fields in JSON."""
        model = self.operation.response
        return tuple(field.alias or name for name, field in model.model_fields.items())
