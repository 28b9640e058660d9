"""The interface of an operator's action, and the base models of its arguments."""

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
    """The arguments of an action that needs only the operator's name and a note."""

    model_config = ConfigDict(frozen=True)


class StepArguments(NoArguments):
    """The arguments of an action on one step."""

    step: StepName | None = None
    """The step to act on. It may be omitted if the action can concern only one step."""


Arguments = TypeVar("Arguments", bound=NoArguments)
KeptAnswer = Callable[[OrderAggregate, str, Mapping[str, Any]], Mapping[str, Any]]
"""Returns the answer to a step of the order as its workflow keeps it. Raises `InvalidError` with
every fault."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OperatorCommand(Generic[Arguments]):
    """An operator's request to carry out an action, with its arguments."""

    operator: str
    note: str
    arguments: Arguments


class OperatorAction(ABC, Generic[Arguments]):
    """An action of operators on an order.

    The order's own records are enough to decide an action. Its workflow is not needed. An action is
    one change of the state like any other, so it survives any crash. Its message only wakes a
    scheduler (OPR-3, OPR-4, OPR-6).
    """

    name: ClassVar[str]
    """The name in routes, commands and the history. The keys of its texts contain it."""
    rank: ClassVar[int] = 100
    """The position among the offered actions. The lowest is first."""
    is_irreversible: ClassVar[bool] = False
    lists: ClassVar[tuple[WorkItemKind, ...]]
    """The lists in which a bulk action finds its orders."""
    asks: type[Arguments]

    @abstractmethod
    def why_not(self, order: OrderAggregate, now: datetime) -> Cause | None:
        """Return the reason why the action is not possible for the order now, or None."""

    def steps(self, order: OrderAggregate, now: datetime) -> Sequence[Step]:
        """Return the steps from which an operator can choose one for the action."""
        return ()

    def why_not_now(
        self, order: OrderAggregate, arguments: Arguments, now: datetime
    ) -> Cause | None:
        """Return the reason why the action is not possible with these arguments, or None.

        Called only if `why_not` returns None.
        """
        return None

    @abstractmethod
    def apply(
        self, order: OrderAggregate, command: OperatorCommand[Arguments], now: datetime
    ) -> NextVersion:
        """Act on the order.

        Called only if `why_not` and `why_not_now` return None.
        """

    def checked(
        self, order: OrderAggregate, command: OperatorCommand[Arguments], kept: KeptAnswer
    ) -> OperatorCommand[Arguments]:
        """Return the command with arguments that the order's workflow has checked.

        Raises `InvalidError` with every fault.
        """
        return command

    def act(
        self, order: OrderAggregate, command: OperatorCommand[Arguments], now: datetime
    ) -> Transition:
        """Return the transition of the order.

        Raises `RefusedError` if the action is not possible now.
        """
        cause = self.why_not(order, now) or self.why_not_now(order, command.arguments, now)
        if cause:
            raise RefusedError(cause)
        return transition_of(self.apply(order, command, now), f"operator/{command.operator}")
