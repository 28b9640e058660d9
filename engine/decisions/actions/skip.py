"""Skip a failed step, because it was done, or undone, by other means (OPR-4)."""

from collections.abc import Sequence
from datetime import datetime

from engine.decisions.actions.action import OperatorAction, OperatorCommand, StepArguments
from engine.decisions.drafts import NextVersion
from engine.decisions.repair import (
    chosen,
    failed_steps,
    resumed_or_left,
    why_not_chosen,
    why_not_repaired,
)
from engine.domain import verbs
from engine.domain.causes import Cause, Code
from engine.domain.events import StepActionTaken
from engine.domain.orders import OrderAggregate
from engine.domain.states import Finished
from engine.domain.steps import Step
from engine.domain.work_index import WorkItemKind


class Skip(OperatorAction[StepArguments]):
    """Skip a failed step.

    If the order is undone later, a skipped step that was ever tried is undone too (UND-2).
    """

    name = "skip"
    rank = 20
    lists = (WorkItemKind.ERROR,)
    asks = StepArguments

    def why_not(self, order: OrderAggregate, now: datetime) -> Cause | None:
        if cause := why_not_repaired(order, self.name):
            return cause
        failed = failed_steps(order)
        if not failed:
            return Cause(Code.NO_SUCH_STEP, {"action": self.name, "steps": []})
        needed = {step.name: _needing(order, step) for step in failed}
        return Cause(Code.RESULT_NEEDED, {"needed": needed}) if all(needed.values()) else None

    def steps(self, order: OrderAggregate, now: datetime) -> Sequence[Step]:
        return [step for step in failed_steps(order) if not _needing(order, step)]

    def why_not_now(
        self, order: OrderAggregate, arguments: StepArguments, now: datetime
    ) -> Cause | None:
        failed = failed_steps(order)
        if cause := why_not_chosen(failed, arguments.step, self.name):
            return cause
        step = chosen(failed, arguments.step)
        needing = _needing(order, step)
        return Cause(Code.RESULT_NEEDED, {"needed": {step.name: needing}}) if needing else None

    def apply(
        self, order: OrderAggregate, command: OperatorCommand[StepArguments], now: datetime
    ) -> NextVersion:
        """Skip the step. The order continues unless another step has failed too."""
        step = chosen(failed_steps(order), command.arguments.step)
        after = order.with_steps(verbs.skip(step))
        taken = StepActionTaken(action=self.name, step=step.name, note=command.note)
        return resumed_or_left(order, after, now, taken)


def _needing(order: OrderAggregate, failed: Step) -> list[str]:
    """Return the unfinished steps that need the result of this step. There are none in an undo."""
    if order.is_undo:
        return []
    to_come = (step for step in order.steps if not isinstance(step.state, Finished))
    return [step.name for step in to_come if failed.name in step.rules.uses]


ACTION = Skip()
