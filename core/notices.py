"""What the sender of an order is told of it, on a private queue of its own (ALR-2, ALR-3).

Notices follow from an order's records before and after a transition, so no transition can forget one; they are written
with it, and sent afterwards. They carry no personal data and name no instance.
"""

import json
from collections.abc import Iterator
from datetime import datetime

from core.messages import BusMessage
from core.orders import Outcome, ProcessState, Snapshot, StepState

MAX_PER_TRANSITION = 100
"""More than there are steps in a workflow."""


def notices_of(before: Snapshot | None, after: Snapshot, at: datetime) -> Iterator[BusMessage]:
    """Yield what the sender is told of this transition; nothing if it named no queue.

    A notice's id is the same however often it is sent. Its `sequence` grows with each notice of the order: what comes
    out of order can be put right.
    """
    state = after.state
    if state.reply_to is None:
        return
    for number, (event, more) in enumerate(_events(before, after)):
        notice_id = f"{state.order_id}:{state.version}:{number}"
        body = {
            "orderId": state.order_id,
            "event": event,
            "at": at.isoformat(),
            "sequence": state.version * MAX_PER_TRANSITION + number,
            **{name: value for name, value in more.items() if value is not None},
            "noticeId": notice_id,
        }
        yield BusMessage(
            queue=state.reply_to,
            message_id=notice_id,
            correlation_id=state.order_id,
            body=json.dumps(body, ensure_ascii=False),
        )


def _events(before: Snapshot | None, after: Snapshot) -> Iterator[tuple[str, dict[str, str | None]]]:
    if before is None:
        yield "received", {}
        return
    if any(step.attempts for step in after.steps) and not any(step.attempts for step in before.steps):
        yield "processing-started", {}
    done = {step.name for step in before.in_state(StepState.COMPLETED)}
    for step in after.in_state(StepState.COMPLETED):
        if step.name not in done:
            yield "step-completed", {"step": step.name}
    if before.state.process_state is not after.state.process_state:
        yield from _end(after)


def _end(after: Snapshot) -> Iterator[tuple[str, dict[str, str | None]]]:
    state = after.state
    match state.process_state:
        case ProcessState.PROCESSED:
            yield "order-completed", {}
        case ProcessState.ERROR if state.outcome is Outcome.UNDONE:
            yield "order-undone", {"reason": state.reason}
        case ProcessState.ERROR:
            yield "order-failed", {"reason": state.reason}
