"""The events that tell operators what happened and what they can do (ALR-1). They carry no personal data."""

from datetime import datetime

from core.changes import Event
from core.orders import Direction, Outcome, Snapshot

ORDER_FAILED = "OrderProcessing.OrderFailed"
ORDER_UNDONE = "OrderProcessing.OrderUndone"
SUBMISSION_REJECTED = "OrderProcessing.SubmissionRejected"


def order_ended(after: Snapshot, cause: str, now: datetime) -> Event:
    """Tell that the order is in `Error`: the id is that of the transition, so sending twice is seen as one.

    An order that was undone completely needs nobody; the event only informs.
    """
    state = after.state
    undone = state.outcome is Outcome.UNDONE
    return Event(
        event_id=f"{state.order_id}:{state.version + 1}",
        type=ORDER_UNDONE if undone else ORDER_FAILED,
        subject=f"orders/{state.order_id}",
        at=now,
        data={
            "orderId": state.order_id,
            "step": cause,
            "reason": state.reason,
            "outcome": state.outcome or Outcome.FAILED,
            "failureCount": state.failure_count,
            "stillToBeUndone": [step.name for step in after.steps if step.undo_failed or step.waits_for_undo]
            if state.direction is Direction.UNDO
            else [],
            "actionRequired": not undone,
            "actions": [] if undone else ["resubmit"],
        },
    )


def submission_rejected(order_id: str | None, reason: str, event_id: str, now: datetime) -> Event:
    """Tell that a submission was refused and where it is kept (SUB-3, SUB-4)."""
    return Event(
        event_id=event_id,
        type=SUBMISSION_REJECTED,
        subject=f"orders/{order_id or 'unknown'}",
        at=now,
        data={
            "orderId": order_id,
            "reason": reason,
            "actionRequired": True,
            "actions": ["correct the message in order-submissions-poison and submit it again"],
        },
    )
