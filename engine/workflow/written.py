"""One step of a workflow, as its author wrote it: a function, with what is declared beside it."""

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
"""Makes the request of a step."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step as its author wrote it."""

    make: Make[Model]
    operation: Operation[Any, Any]
    undo: Operation[Any, Any] | None
    after: Sequence[Make[Model]]
    """Steps that it comes after, beside those whose answers its functions take."""
    rules: Mapping[str, Any]
    """Further fields of its definition."""
    conditions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """The functions that are evaluated when its turn comes, by the field of its definition."""
    faults: Sequence[Fault] = ()
    """What is wrong with its options, which are left out of its rules."""

    @property
    def is_external(self) -> bool:
        """Whether an event from outside completes the step."""
        return self.rules.get("kind") is StepKind.EXTERNAL

    @property
    def may_be_skipped(self) -> bool:
        """Whether an order may go on without the step, by the workflow's own rules."""
        return self.rules.get("on_failure") is OnFailure.CONTINUE or "condition" in self.conditions

    @cached_property
    def name(self) -> str:
        """The name of the function, such as `check-in` for `check_in`."""
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
        """All of its functions."""
        return [self.make, *self.conditions.values()]

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The fields of its answer, as they are sent."""
        model = self.operation.response
        return tuple(field.alias or name for name, field in model.model_fields.items())
