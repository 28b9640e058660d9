"""Put an order on hold: no step of it starts until it is released (OPR-7)."""

from datetime import datetime

from engine.decisions.drafts import NextVersion, next_version
from engine.domain.causes import Cause, Code
from engine.domain.events import Action, ActionTaken
from engine.domain.orders import PROCESS_STATE, Hold, OrderAggregate


def refusal(order: OrderAggregate) -> Cause | None:
    """Return why the order cannot be put on hold; None if it can."""
    if order.has_ended:
        return Cause(Code.NOTHING_TO_HOLD, {"state": str(PROCESS_STATE[type(order.state)])})
    return Cause(Code.ON_HOLD_ALREADY, {"by": order.hold.by}) if order.hold else None


def decide(order: OrderAggregate, operator: str, note: str, now: datetime) -> NextVersion:
    """Let no step start; running steps answer, or expire and are recovered."""
    held = order.put_on_hold(Hold(operator, note, now))
    return next_version(order, held, now, (ActionTaken(action=Action.HOLD, note=note),))
