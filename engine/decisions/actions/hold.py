"""Put an order on hold: none of its steps starts until it is released (OPR-7)."""

from datetime import datetime

from engine.decisions.actions.action import NoArguments, OperatorAction, OperatorCommand
from engine.decisions.drafts import NextVersion, next_version
from engine.domain.causes import Cause, Code
from engine.domain.events import ActionTaken
from engine.domain.orders import PROCESS_STATE, Hold, OrderAggregate
from engine.domain.work_index import WorkItemKind


class HoldOrder(OperatorAction[NoArguments]):
    """Let no step start.

    Running attempts end as usual: their agents reply, or they expire.
    """

    name = "hold"
    rank = 60
    lists = (WorkItemKind.PENDING, WorkItemKind.RUNNING, WorkItemKind.WAITING)
    asks = NoArguments

    def why_not(self, order: OrderAggregate, now: datetime) -> Cause | None:
        if order.has_ended:
            return Cause(Code.NOTHING_TO_HOLD, {"state": str(PROCESS_STATE[type(order.state)])})
        return Cause(Code.ON_HOLD_ALREADY, {"by": order.hold.by}) if order.hold else None

    def apply(
        self, order: OrderAggregate, command: OperatorCommand[NoArguments], now: datetime
    ) -> NextVersion:
        held = order.put_on_hold(Hold(command.operator, command.note, now))
        taken = ActionTaken(action=self.name, note=command.note)
        return next_version(order, held, now, (taken,))


ACTION = HoldOrder()
