"""Until when an agent may work on a request, and its replies."""

from datetime import datetime, timedelta
from typing import Any

from engine.domain.errors import (
    AcceptedError,
    CircuitOpenError,
    NotTriedError,
    RejectedError,
    ThrottledError,
)
from engine.domain.messages import MAX_RETRY_AFTER_SECONDS, AgentReply, AgentRequest

MAX_REASON = 1000
"""Maximum number of characters of a reply's reason."""


LONGEST_PAUSE_SECONDS = 5.0
"""The longest wait before a request that came before."""


def pause_before(delivery: int) -> float:
    """Return how many seconds an agent waits before it works on a request that came before.

    A bus delivers at once again what failed, up to 2,000 times. Without a pause, a fault in the
    code that calls a service would call it many times a second until the complete-by time. While a
    worker process is replaced, a request uses up some twenty deliveries, which costs little here.
    """
    return min(0.01 * delivery, LONGEST_PAUSE_SECONDS)


def stop_at(request: AgentRequest, margin: timedelta) -> datetime:
    """Return when the agent stops: before the complete-by time, since clocks differ (AGT-4)."""
    return request.complete_by - margin


def failed(
    request: AgentRequest,
    rejection: RejectedError,
    *,
    was_called: bool,
    was_deferred: bool,
) -> AgentReply:
    """Return the reply to a request that the service refused (AGT-6).

    `was_called` says whether earlier calls had no answer: then the outcome is in doubt. So it is if
    the service had accepted one (`was_deferred`), and the refusal is not its own (AGT-11).
    """
    owes_answer = was_deferred and rejection.for_operator
    return reply(
        request,
        "failed",
        reason=str(rejection)[:MAX_REASON],
        in_doubt=rejection.in_doubt or was_called or owes_answer,
        for_operator=rejection.for_operator,
        **rejection.identifiers,
    )


def latest_beginning(request: AgentRequest, margin: timedelta, call_timeout: timedelta) -> datetime:
    """Return until when work on a request may begin.

    It may begin while half of its time, or the time of a whole call, is left. After that a timeout
    would be charged to an order that had only waited.
    """
    half = request.issued_at + (request.complete_by - request.issued_at) / 2
    return max(half, stop_at(request, margin) - call_timeout)


def not_attempted(
    request: AgentRequest,
    reason: NotTriedError,
    *,
    was_called: bool,
    was_deferred: bool,
) -> AgentReply:
    """Return the reply to a request that may come again later, without a failure (AGT-8).

    `was_called` is that of `failed`; `was_deferred` says whether the service owes the final answer
    to an earlier call (AGT-11).
    """
    return reply(
        request,
        "notAttempted",
        reason=str(reason)[:MAX_REASON],
        retry_after=max(0.0, reason.retry_after.total_seconds()),
        circuit_open=isinstance(reason, CircuitOpenError),
        throttled=isinstance(reason, ThrottledError),
        in_doubt=reason.in_doubt or was_called,
        deferred=was_deferred,
    )


SHORTEST_PAUSE, LONGEST_PAUSE = timedelta(seconds=1), timedelta(seconds=MAX_RETRY_AFTER_SECONDS)
"""The bounds of the pause before a service is asked again about what it has accepted."""


def pause_after(accepted: AcceptedError) -> timedelta:
    """Return the pause that the service asks for, within bounds (AGT-11)."""
    return min(max(accepted.retry_after, SHORTEST_PAUSE), LONGEST_PAUSE)


def is_overdue(request: AgentRequest, now: datetime) -> bool:
    """Whether the service should have done by now what it accepted (AGT-11)."""
    return request.answer_by is not None and now >= request.answer_by


def deferred(request: AgentRequest, accepted: AcceptedError, *, was_called: bool) -> AgentReply:
    """Return the reply to a request that the service will do later: it is asked again (AGT-11).

    `was_called` is that of `failed`.
    """
    return reply(
        request,
        "notAttempted",
        reason=str(accepted)[:MAX_REASON],
        retry_after=pause_after(accepted).total_seconds(),
        deferred=True,
        in_doubt=was_called,
    )


def reply(request: AgentRequest, outcome: Any, **more: Any) -> AgentReply:
    """Return a reply to the request, with its complete-by time."""
    return AgentReply(
        order_id=request.order_id,
        step=request.step,
        action=request.action,
        attempt=request.attempt,
        outcome=outcome,
        complete_by=request.complete_by,
        **more,
    )
