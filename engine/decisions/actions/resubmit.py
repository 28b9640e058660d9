"""Resubmit an order in `Error`: it continues from its failed steps (OPR-3, UND-4)."""

from datetime import datetime

from engine.decisions.actions.action import NoArguments, OperatorAction, OperatorCommand
from engine.decisions.drafts import NextVersion, next_version
from engine.decisions.repair import (
    failed_steps,
    forgotten_steps,
    interrupted_steps,
    resumed,
    why_not_repaired,
)
from engine.domain.causes import Cause, Code
from engine.domain.events import ActionTaken
from engine.domain.orders import OrderAggregate
from engine.domain.verbs import reset
from engine.domain.work_index import WorkItemKind


class Resubmit(OperatorAction[NoArguments]):
    """Let each failed or interrupted step start afresh. Completed steps stay completed."""

    name = "resubmit"
    rank = 10
    lists = (WorkItemKind.ERROR,)
    asks = NoArguments

    def why_not(self, order: OrderAggregate, now: datetime) -> Cause | None:
        if cause := why_not_repaired(order, self.name):
            return cause
        # A step in doubt whose key is forgotten could be done twice (AGT-12).
        names = [step.name for step in forgotten_steps(order, now)]
        facts = {"steps": names, "is_undo": order.is_undo}
        return Cause(Code.KEYS_FORGOTTEN, facts) if names else None

    def apply(
        self, order: OrderAggregate, command: OperatorCommand[NoArguments], now: datetime
    ) -> NextVersion:
        """Reset the failed steps, and the steps that the deadline of the order interrupted.

        A step whose service would refuse its key again gets the next key (AGT-3).
        """
        fresh = map(reset, (*failed_steps(order), *interrupted_steps(order)))
        resumed_order = resumed(order.with_steps(*fresh), now)
        taken = ActionTaken(action=self.name, note=command.note)
        return next_version(order, resumed_order, now, (taken,))


ACTION = Resubmit()
