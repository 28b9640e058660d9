"""Expedite an order: schedulers claim it before orders of normal priority (SCH-11, OPR-8)."""

from dataclasses import replace
from datetime import datetime

from engine.decisions.actions.action import NoArguments, OperatorAction, OperatorCommand
from engine.decisions.drafts import NextVersion, next_version
from engine.domain.causes import Cause, Code
from engine.domain.events import ActionTaken
from engine.domain.orders import PROCESS_STATE, OrderAggregate
from engine.domain.submitted_order import Priority
from engine.domain.work_index import WorkItemKind
from engine.features.cooldown import end_cooldown, is_cooling_down


class Expedite(OperatorAction[NoArguments]):
    """Give the order high priority, and end the cooldown of each step and of each undo."""

    name = "expedite"
    rank = 80
    lists = (WorkItemKind.PENDING,)
    asks = NoArguments

    def why_not(self, order: OrderAggregate, now: datetime) -> Cause | None:
        if order.has_ended:
            return Cause(Code.NOTHING_TO_EXPEDITE, {"state": str(PROCESS_STATE[type(order.state)])})
        is_fast = order.priority is Priority.HIGH and not any(map(is_cooling_down, order.steps))
        return Cause(Code.EXPEDITED_ALREADY) if is_fast else None

    def apply(
        self, order: OrderAggregate, command: OperatorCommand[NoArguments], now: datetime
    ) -> NextVersion:
        # The operator knows that the cause of the cooldown is repaired.
        cooling = filter(is_cooling_down, order.steps)
        expedited = replace(order.with_steps(*map(end_cooldown, cooling)), priority=Priority.HIGH)
        taken = ActionTaken(action=self.name, note=command.note)
        return next_version(order, expedited, now, (taken,))


ACTION = Expedite()
