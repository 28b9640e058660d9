"""Release an order from its hold (OPR-7)."""

from datetime import datetime

from engine.decisions.drafts import NextVersion, next_version
from engine.domain.causes import Cause, Code
from engine.domain.events import Action, ActionTaken
from engine.domain.orders import OrderAggregate
from engine.features.external_events.steps import move_deadlines


def refusal(order: OrderAggregate) -> Cause | None:
    """Return why the order cannot be released; None if it can."""
    return None if order.hold else Cause(Code.NOT_ON_HOLD)


def decide(order: OrderAggregate, note: str, now: datetime) -> NextVersion:
    """Let the order go on from where it was; chosen dates stay as they are.

    The deadline of an external event moves by the time for which the order was on hold.
    """
    held_for = now - (order.hold.since if order.hold else now)
    released = move_deadlines(order, held_for).release()
    return next_version(order, released, now, (ActionTaken(action=Action.RELEASE, note=note),))
