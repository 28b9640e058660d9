"""Retry a failed step with a new key: it was not done, and its key is forgotten (AGT-12)."""

from collections.abc import Sequence
from datetime import datetime

from engine.decisions.actions.action import OperatorAction, OperatorCommand, StepArguments
from engine.decisions.drafts import NextVersion
from engine.decisions.repair import (
    chosen,
    forgotten_steps,
    resumed_or_left,
    why_not_chosen,
    why_not_repaired,
)
from engine.domain.causes import Cause, Code
from engine.domain.events import StepActionTaken
from engine.domain.orders import OrderAggregate
from engine.domain.steps import Step
from engine.domain.work_index import WorkItemKind
from engine.features import key_generations


class RetryWithNewKey(OperatorAction[StepArguments]):
    """Let a failed step start afresh with a new key.

    If the operator is mistaken, the step is done twice.
    """

    name = "retry-with-new-key"
    rank = 30
    is_irreversible = True
    lists = (WorkItemKind.ERROR,)
    asks = StepArguments

    def why_not(self, order: OrderAggregate, now: datetime) -> Cause | None:
        if order.is_undo:
            return Cause(Code.BEING_UNDONE)
        if cause := why_not_repaired(order, self.name):
            return cause
        return None if forgotten_steps(order, now) else Cause(Code.NO_KEY_FORGOTTEN)

    def steps(self, order: OrderAggregate, now: datetime) -> Sequence[Step]:
        return forgotten_steps(order, now)

    def why_not_now(
        self, order: OrderAggregate, arguments: StepArguments, now: datetime
    ) -> Cause | None:
        return why_not_chosen(forgotten_steps(order, now), arguments.step, self.name)

    def apply(
        self, order: OrderAggregate, command: OperatorCommand[StepArguments], now: datetime
    ) -> NextVersion:
        """Give the step its next key. The order continues unless another step has failed too."""
        step = chosen(forgotten_steps(order, now), command.arguments.step)
        after = order.with_steps(key_generations.retry_with_new_key(step))
        taken = StepActionTaken(action=self.name, step=step.name, note=command.note)
        return resumed_or_left(order, after, now, taken)


ACTION = RetryWithNewKey()
