"""The form of an operator's action, and of what it asks of the operator."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from engine.decisions.drafts import NextVersion
from engine.decisions.transitions import Transition, transition_of
from engine.domain.causes import Cause
from engine.domain.errors import RefusedError
from engine.domain.messages import StepName
from engine.domain.orders import OrderAggregate
from engine.domain.steps import Step
from engine.domain.work_index import WorkItemKind


class NoArguments(BaseModel):
    """An action asks for nothing beside the operator's name and a note."""

    model_config = ConfigDict(frozen=True)


class StepArguments(NoArguments):
    """An action concerns one step."""

    step: StepName | None = None
    """The step that is acted on; may be left out if there is only one."""


Arguments = TypeVar("Arguments", bound=NoArguments)
KeptAnswer = Callable[[OrderAggregate, str, Mapping[str, Any]], Mapping[str, Any]]
"""Returns an answer to a step of the order as its workflow keeps it.

Raises `InvalidError` with every fault.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class OperatorCommand(Generic[Arguments]):
    """An action as an operator asks for it."""

    operator: str
    note: str
    arguments: Arguments


class OperatorAction(ABC, Generic[Arguments]):
    """What operators can do to an order.

    An action is decided from the order's own records, without its workflow. It is a change of the
    state like any other, so it survives any crash; its message only wakes a scheduler (OPR-3,
    OPR-4, OPR-6).
    """

    name: ClassVar[str]
    """The name in routes, commands and the history; its words have it in their keys."""
    rank: ClassVar[int] = 100
    """Its place among the actions that are offered, the lowest first."""
    is_irreversible: ClassVar[bool] = False
    lists: ClassVar[tuple[WorkItemKind, ...]]
    """The lists in which a bulk action finds its orders."""
    asks: type[Arguments]

    @abstractmethod
    def why_not(self, order: OrderAggregate, now: datetime) -> Cause | None:
        """Return why the action makes no sense for the order now; None if it does."""

    def steps(self, order: OrderAggregate, now: datetime) -> Sequence[Step]:
        """Return the steps of which the action can concern one."""
        return ()

    def why_not_now(
        self, order: OrderAggregate, arguments: Arguments, now: datetime
    ) -> Cause | None:
        """Return why the action makes no sense with these arguments; None if it does.

        It is called where `why_not` returns None.
        """
        return None

    @abstractmethod
    def apply(
        self, order: OrderAggregate, command: OperatorCommand[Arguments], now: datetime
    ) -> NextVersion:
        """Act on the order; called only where both questions have the answer None."""

    def checked(
        self, order: OrderAggregate, command: OperatorCommand[Arguments], kept: KeptAnswer
    ) -> OperatorCommand[Arguments]:
        """Return the command as the order's workflow reads it; raises `InvalidError`."""
        return command

    def act(
        self, order: OrderAggregate, command: OperatorCommand[Arguments], now: datetime
    ) -> Transition:
        """Return the change of the order; raises `RefusedError`."""
        cause = self.why_not(order, now) or self.why_not_now(order, command.arguments, now)
        if cause:
            raise RefusedError(cause)
        return transition_of(self.apply(order, command, now), f"operator/{command.operator}")
