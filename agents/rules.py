"""Until when an agent may work on a request, and its replies."""

from datetime import datetime, timedelta
from typing import Any

from core.errors import AskedToWaitError, CircuitOpenError, NotTriedError, RejectedError
from core.messages import AgentReply, AgentRequest

MAX_REASON = 1000
"""Maximum number of characters of a reply's reason."""


def stop_at(request: AgentRequest, margin: timedelta) -> datetime:
    """Return when the agent stops: before the complete-by time, since clocks differ (AGT-4)."""
    return request.complete_by - margin


def failed(request: AgentRequest, rejection: RejectedError, *, was_called: bool) -> AgentReply:
    """Return the reply to a request that the service refused (AGT-6).

    `was_called` says whether earlier calls had no answer: then the outcome is in doubt.
    """
    return reply(
        request,
        "failed",
        reason=str(rejection)[:MAX_REASON],
        in_doubt=rejection.in_doubt or was_called,
        for_operator=rejection.for_operator,
    )


def latest_beginning(request: AgentRequest, margin: timedelta, call_timeout: timedelta) -> datetime:
    """Return until when work on a request may begin.

    It may begin while half of its time is left, or enough time for a whole call. A request that
    began later could time out only because it had waited, and that would count as a failure.
    """
    half = request.issued_at + (request.complete_by - request.issued_at) / 2
    return max(half, stop_at(request, margin) - call_timeout)


def not_tried(request: AgentRequest, reason: NotTriedError, *, was_called: bool) -> AgentReply:
    """Return the reply to a request that may come again later, without a failure (AGT-8)."""
    return reply(
        request,
        "notTried",
        reason=str(reason)[:MAX_REASON],
        retry_after=max(0.0, reason.retry_after.total_seconds()),
        circuit_open=isinstance(reason, CircuitOpenError),
        asked=isinstance(reason, AskedToWaitError),
        in_doubt=reason.in_doubt or was_called,
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
