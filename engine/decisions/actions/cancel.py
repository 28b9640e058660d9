"""Cancel an order that is not finished: everything that was ever tried is undone (OPR-4, UND-1)."""

from datetime import datetime

from engine.decisions.drafts import NextVersion, next_version
from engine.domain.causes import Cause, Code
from engine.domain.events import Action, ActionTaken
from engine.domain.orders import InError, OrderAggregate, Processed
from engine.features.external_events.steps import cancel_requests

OPERATOR, CUSTOMER = "operator", "customer"
"""Who may cancel an order."""


def refusal(order: OrderAggregate) -> Cause | None:
    """Return why the order cannot be cancelled; None if it can."""
    if isinstance(order.state, Processed):
        return Cause(Code.PROCESSED_ALREADY)
    if order.is_over:
        return Cause(Code.UNDONE_ALREADY)
    if order.is_undo:
        has_stopped = isinstance(order.state, InError)
        return Cause(Code.UNDO_REQUESTED_ALREADY, {"has_stopped": has_stopped})
    passed = [step.name for step in order.passed_pivots()]
    return Cause(Code.PIVOT_PASSED, {"steps": passed}) if passed else None


def decide(order: OrderAggregate, by: str, note: str, now: datetime) -> NextVersion:
    """Request the undo, whatever the order is doing.

    Agents answer or expire first, so a scheduler that handles the order keeps it (SCH-12).
    """
    without_requests, cancelled = cancel_requests(order)
    after = without_requests.request_undo(Cause(Code.CANCELLED, {"by": by}))
    taken = ActionTaken(action=Action.CANCEL, note=note)
    return next_version(order, after, now, (taken, *cancelled))
