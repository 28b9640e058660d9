"""Resubmit an order in `Error`: it goes on from its failed steps (OPR-3, UND-4)."""

from datetime import datetime

from engine.decisions.drafts import NextVersion, next_version
from engine.decisions.repair import failed_steps, forgotten_steps, resumed, why_not_repaired
from engine.domain.causes import Cause, Code
from engine.domain.events import Action, ActionTaken
from engine.domain.orders import OrderAggregate
from engine.domain.verbs import reset


def refusal(order: OrderAggregate, now: datetime) -> Cause | None:
    """Return why the order cannot be resubmitted now; None if it can.

    A step in doubt whose key is forgotten could be done twice (AGT-12).
    """
    if cause := why_not_repaired(order, Action.RESUBMIT):
        return cause
    names = [step.name for step in forgotten_steps(order, now)]
    facts = {"steps": names, "is_undo": order.is_undo}
    return Cause(Code.KEYS_FORGOTTEN, facts) if names else None


def decide(order: OrderAggregate, note: str, now: datetime) -> NextVersion:
    """Let each failed step start afresh; what is completed stays so.

    A step whose service would refuse its key again gets the next one (AGT-3).
    """
    fresh = resumed(order.with_steps(*map(reset, failed_steps(order))))
    taken = ActionTaken(action=Action.RESUBMIT, note=note)
    return next_version(order, fresh, now, (taken,))
