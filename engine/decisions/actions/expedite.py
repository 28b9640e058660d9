"""Expedite an order: it is claimed before those of normal priority (SCH-11, OPR-8)."""

from dataclasses import replace
from datetime import datetime

from engine.decisions.drafts import NextVersion, next_version
from engine.domain.causes import Cause, Code
from engine.domain.events import Action, ActionTaken
from engine.domain.orders import PROCESS_STATE, OrderAggregate
from engine.domain.submitted_order import Priority
from engine.features.cooldown import end_cooldown, is_cooling_down


def refusal(order: OrderAggregate) -> Cause | None:
    """Return why the order cannot be expedited; None if it can."""
    if order.has_ended:
        return Cause(Code.NOTHING_TO_EXPEDITE, {"state": str(PROCESS_STATE[type(order.state)])})
    is_fast = order.priority is Priority.HIGH and not any(map(is_cooling_down, order.steps))
    return Cause(Code.EXPEDITED_ALREADY) if is_fast else None


def decide(order: OrderAggregate, note: str, now: datetime) -> NextVersion:
    """Give the order high priority, and end the cooldown of each step and of each undo.

    The operator knows that its cause is mended. Other dates stay.
    """
    cooling = filter(is_cooling_down, order.steps)
    expedited = replace(order.with_steps(*map(end_cooldown, cooling)), priority=Priority.HIGH)
    taken = ActionTaken(action=Action.EXPEDITE, note=note)
    return next_version(order, expedited, now, (taken,))
