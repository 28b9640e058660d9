"""Release an order from its hold (OPR-7)."""

from datetime import datetime

from engine.decisions.actions.action import NoArguments, OperatorAction, OperatorCommand
from engine.decisions.drafts import NextVersion, next_version
from engine.domain.causes import Cause, Code
from engine.domain.events import ActionTaken
from engine.domain.orders import OrderAggregate
from engine.domain.work_index import WorkItemKind
from engine.features.external_events.steps import move_deadlines


class Release(OperatorAction[NoArguments]):
    """Let the order continue where it stopped. Chosen start times do not move."""

    name = "release"
    rank = 70
    lists = (WorkItemKind.HELD,)
    asks = NoArguments

    def why_not(self, order: OrderAggregate, now: datetime) -> Cause | None:
        return None if order.hold else Cause(Code.NOT_ON_HOLD)

    def apply(
        self, order: OrderAggregate, command: OperatorCommand[NoArguments], now: datetime
    ) -> NextVersion:
        """Release the order.

        The deadline of each external event moves by the duration of the hold.
        """
        held_for = now - (order.hold.since if order.hold else now)
        released = move_deadlines(order, held_for).release()
        taken = ActionTaken(action=self.name, note=command.note)
        return next_version(order, released, now, (taken,))


ACTION = Release()
