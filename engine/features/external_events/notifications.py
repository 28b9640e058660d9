"""The notifications of systems and senders that an external event is awaited (ANS-7)."""

from collections.abc import Iterator
from typing import TypeGuard

from engine.decisions.transitions import HistoryEntry, OperatorEvent
from engine.domain.events import Action, HistoryEvent, StepActionTaken, StepStarted
from engine.domain.keys import ABOUT_ORDER
from engine.domain.orders import OrderAggregate
from engine.domain.states import AwaitingExternalEvent
from engine.domain.steps import Step

EVENT_AWAITED = "OrderProcessing.AnswerAwaited"
EVENT_REMINDED = "OrderProcessing.AnswerReminded"
NEWS = (EVENT_AWAITED, EVENT_REMINDED)
"""The events that are no alerts. Operators need not see them."""

Request = StepStarted | StepActionTaken
"""A history event by which an external party gets a request."""


def requests_in(after: OrderAggregate, entry: HistoryEntry) -> Iterator[tuple[Request, Step]]:
    """Yield the requests of a history entry, each with its step if it still awaits the event."""
    for event in entry.events:
        if _is_request(event):
            step = after.step(event.step)
            if step and isinstance(step.state, AwaitingExternalEvent):
                yield event, step


def _is_request(event: HistoryEvent) -> TypeGuard[Request]:
    if isinstance(event, StepActionTaken):
        return event.action in (Action.REMIND, Action.EXTEND_DEADLINE)
    return isinstance(event, StepStarted)


def is_reminder(request: Request, step: Step) -> bool:
    """Return whether the event was requested before, and is requested again."""
    if isinstance(request, StepActionTaken):
        return request.action == Action.REMIND
    return step.counts.failures > 0


def until(step: Step) -> str | None:
    """Return the due time of the event as text, or None."""
    return step.complete_by.isoformat() if step.complete_by else None


def operator_events(after: OrderAggregate, entry: HistoryEntry) -> Iterator[OperatorEvent]:
    """Yield the events that announce an awaited external event.

    They are no alerts, and contain neither the question nor the callback URL.
    """
    for request, step in requests_in(after, entry):
        yield OperatorEvent(
            event_id=f"{after.order_id}:{after.version}:{step.name}",
            type=EVENT_REMINDED if is_reminder(request, step) else EVENT_AWAITED,
            subject=f"{ABOUT_ORDER}{after.order_id}",
            at=entry.at,
            data={
                "orderId": after.order_id,
                "step": step.name,
                "until": until(step),
                "actionRequired": False,
                "actions": [],
            },
        )
