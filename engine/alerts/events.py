"""The events that alert operators and name the possible actions (ALR-1).

They have no personal data. Their reason is a cause, and the recommended action is a code.
`engine.words.alerts` translates both into words when the event is sent.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from pydantic import AwareDatetime

from engine.alerts.conditions import Condition
from engine.decisions.operator_actions import possible
from engine.decisions.transitions import HistoryEntry, OperatorEvent
from engine.domain.causes import Cause, Code, group_of
from engine.domain.clocks import ClockSkew
from engine.domain.deadlines import WhenLate
from engine.domain.events import DeadlinePassed, DueSoon, OrderEnded, WorkflowChanged
from engine.domain.keys import ABOUT_ORDER
from engine.domain.orders import OrderAggregate
from engine.domain.states import UndoFailed, UndoPending
from engine.domain.statuses import ORDER_FAILED, ORDER_UNDONE, STATUS_INFO, OrderStatus

SUBMISSION_REJECTED = "OrderProcessing.SubmissionRejected"
NOTICE_GIVEN_UP = "OrderProcessing.NoticeGivenUp"
STALLED = "OrderProcessing.Stalled"
WORKFLOW_CHANGED = "OrderProcessing.WorkflowChanged"
ORDER_DUE_SOON = "OrderProcessing.OrderDueSoon"
ORDER_LATE = "OrderProcessing.OrderLate"

TYPES = (
    ORDER_FAILED,
    ORDER_UNDONE,
    SUBMISSION_REJECTED,
    NOTICE_GIVEN_UP,
    STALLED,
    WORKFLOW_CHANGED,
    ORDER_DUE_SOON,
    ORDER_LATE,
)

SUPERVISOR = "supervisor"
"""The subject of the alert that sweeps have stopped."""

SUBMISSIONS = "submissions"
"""The subject of the alert that submissions wait for a long time."""

WAITING = "orders-waiting"
"""The prefix of the subject of the alert that orders are not claimed. `/` and a capability
follow."""
OVERDUE = "orders-overdue"
HELD = "orders-held"

ABOUT_AGENT = "agents/"
"""The prefix of the subject of an event about an agent. The name of the agent follows."""

ABOUT_CLOCK = "clocks/"
"""The prefix of the subject of an alert about an instance's clock. The name of the instance
follows."""

MAX_OF_STEPS = 1000
"""Maximum number of characters of the changed steps in an alert."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Acknowledgement:
    """The operator who acknowledged an alert, the time and a note."""

    by: str
    """The operator who acknowledged the alert."""
    at: AwareDatetime
    """The time at which the alert was acknowledged."""
    note: str
    """The note of this operator."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Alert:
    """An event that was sent to the operators."""

    key: str
    """The key in the alert log. The newest alert sorts first."""
    event: OperatorEvent
    acknowledged: Acknowledgement | None = None


def _asks_for(*what: str) -> dict[str, Any]:
    """Return the fields with the possible actions.

    Without actions, the event is information only.
    """
    return {"actionRequired": bool(what), "actions": list(what)}


def of(after: OrderAggregate, entry: HistoryEntry) -> Iterator[OperatorEvent]:
    """Yield the alerts for a recorded history entry of an order (ALR-1)."""
    for event in entry.events:
        if isinstance(event, WorkflowChanged):
            yield _workflow_changed(event, entry.at)
        elif isinstance(event, DueSoon):
            yield _about_deadline(ORDER_DUE_SOON, Code.DUE_SOON, after, entry.at)
        elif isinstance(event, DeadlinePassed) and event.when_late is WhenLate.ALERT:
            yield _about_deadline(ORDER_LATE, Code.DEADLINE_PASSED, after, entry.at)
        elif isinstance(event, OrderEnded) and (
            alert := STATUS_INFO[OrderStatus(event.outcome)].alert
        ):
            yield _order_ended(alert, after, event, entry.at)


def _order_ended(
    alert: str, after: OrderAggregate, end: OrderEnded, now: datetime
) -> OperatorEvent:
    """Return the alert that the order is in `Error`.

    If the order was undone completely, the event is information only.
    """
    stands = (step for step in after.steps if isinstance(step.state, UndoFailed | UndoPending))
    return OperatorEvent(
        # The id of the transition, so that a receiver recognises a second delivery.
        event_id=f"{after.order_id}:{after.version}",
        type=alert,
        subject=f"{ABOUT_ORDER}{after.order_id}",
        at=now,
        data={
            "orderId": after.order_id,
            "workflow": after.workflow,
            "step": end.step or "",
            "reason": end.cause and end.cause.as_json(),
            "cause": group_of(end.cause) if end.cause else None,
            "outcome": end.outcome,
            "failureCount": after.failures,
            "stillToBeUndone": [step.name for step in stands],
        }
        | _asks_for(*possible(after, now)),
    )


def _about_deadline(kind: str, code: Code, after: OrderAggregate, now: datetime) -> OperatorEvent:
    """Return the alert that an order is due soon, or that it is late and continues (ALR-6).

    An order has at most one of each. The end of the order in the same transition raises its own
    alert.
    """
    deadline = after.deadline
    due_by = deadline.due_by.isoformat() if deadline else ""
    why = Cause(code, {"due_by": due_by})
    return OperatorEvent(
        event_id=f"{after.order_id}:{code}",
        type=kind,
        subject=f"{ABOUT_ORDER}{after.order_id}",
        at=now,
        data={
            "orderId": after.order_id,
            "workflow": after.workflow,
            "reason": why.as_json(),
            "cause": group_of(why),
            "dueBy": due_by,
            "whenLate": str(deadline.when_late) if deadline else None,
        }
        | _asks_for(*possible(after, now)),
    )


def submission_rejected(
    order_id: str | None, why: Cause, event_id: str, now: datetime
) -> OperatorEvent:
    """Return the alert that a submission was refused and kept as poison (SUB-3, SUB-4)."""
    return OperatorEvent(
        event_id=event_id,
        type=SUBMISSION_REJECTED,
        subject=f"{ABOUT_ORDER}{order_id or 'unknown'}",
        at=now,
        data={"orderId": order_id, "reason": why.as_json()} | _asks_for("correct-message"),
    )


def notice_given_up(order_id: str, queue: str, error: str, now: datetime) -> OperatorEvent:
    """Return the alert that notifications to the sender of an order cannot be sent (ALR-2).

    All notifications of the order to the same queue have the same event id, so the alert is
    recorded once.
    """
    why = Cause(Code.NOTICES_NOT_SENT, {"queue": queue, "error": error})
    return OperatorEvent(
        event_id=f"{order_id}:notices:{queue}",
        type=NOTICE_GIVEN_UP,
        subject=f"{ABOUT_ORDER}{order_id}",
        at=now,
        data={"orderId": order_id, "reason": why.as_json()} | _asks_for("repair-queue"),
    )


def _workflow_changed(changed: WorkflowChanged, now: datetime) -> OperatorEvent:
    """Return the alert that a workflow version was changed while orders follow it.

    All of these orders have the same event id, so the alert is recorded once.
    """
    becomes = sha256(changed.steps.encode()).hexdigest()[:12]
    facts = {
        "workflow": changed.workflow,
        "version": changed.version,
        "steps": changed.steps[:MAX_OF_STEPS],
    }
    return OperatorEvent(
        event_id=f"workflow:{changed.workflow}:{changed.version}:{becomes}",
        type=WORKFLOW_CHANGED,
        subject=f"workflows/{changed.workflow}",
        at=now,
        data={"reason": Cause(Code.WORKFLOW_CHANGED, facts).as_json()} | _asks_for("raise-version"),
    )


def stalled(condition: Condition) -> OperatorEvent:
    """Return the event of the last change of a condition (SUP-7).

    All events of a condition update one alert. Its reason has no time, so that alerts can be
    grouped by reason.
    """
    data = {
        "alert": condition.alert_id,
        "revision": condition.revision,
        "condition": condition.key,
        "status": condition.status.value,
        "reason": condition.reason.as_json(),
        "since": condition.since.isoformat(),
        "first": condition.first.isoformat(),
        "last": condition.last.isoformat(),
        "count": condition.count,
        "orders": list(condition.orders),
    }
    return OperatorEvent(
        event_id=f"{condition.alert_id}:{condition.revision}",
        type=STALLED,
        subject=condition.key,
        at=condition.raised_at,
        data=data | (_asks_for("look-at-health") if condition.is_open else _asks_for()),
    )


def clock_off(instance: str, skew: ClockSkew) -> OperatorEvent:
    """Return the alert that an instance's clock is wrong, so the instance claims no orders (FLT-9).

    There is one alert for each beginning of the skew, by the store's time.
    """
    seconds = round(abs(skew.by.total_seconds()))
    code = Code.CLOCK_AHEAD if skew.by > timedelta() else Code.CLOCK_BEHIND
    why = Cause(code, {"instance": instance, "seconds": seconds})
    return OperatorEvent(
        event_id=f"clock:{instance}:{skew.since.isoformat()}",
        type=STALLED,
        subject=f"{ABOUT_CLOCK}{instance}",
        # The instance's own time is wrong.
        at=skew.since,
        data={"reason": why.as_json(), "since": skew.since.isoformat()} | _asks_for("set-clock"),
    )
