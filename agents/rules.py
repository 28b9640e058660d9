"""What an agent may still do before the complete-by time, and what it answers."""

from datetime import datetime, timedelta
from typing import Any

from core.errors import CircuitOpenError, NotTriedError
from core.messages import AgentReply, AgentRequest


def stop_at(request: AgentRequest, margin: timedelta) -> datetime:
    """Return when the agent stops: a little before the complete-by time, since clocks differ (AGT-4)."""
    return request.complete_by - margin


def silent_from(request: AgentRequest, reply: AgentReply, margin: timedelta) -> datetime:
    """Return from when on the agent does not send this (AGT-4).

    That a call had no answer shows when its time is up, so it may be said a little later; it decides nothing.
    """
    return stop_at(request, margin / 2 if reply.outcome == "unfinished" else margin)


def not_tried(request: AgentRequest, reason: NotTriedError, *, in_doubt: bool) -> AgentReply:
    """Return the reply to a request for which no call was made now, and that may come again later (AGT-8)."""
    return reply(
        request,
        "notTried",
        reason=str(reason),
        retry_after=max(0.0, reason.retry_after.total_seconds()),
        circuit_open=isinstance(reason, CircuitOpenError),
        in_doubt=in_doubt,
    )


def reply(request: AgentRequest, outcome: Any, **more: Any) -> AgentReply:
    """Name what is answered, and until when the answer counts."""
    return AgentReply(
        order_id=request.order_id,
        step=request.step,
        action=request.action,
        attempt=request.attempt,
        outcome=outcome,
        complete_by=request.complete_by,
        **more,
    )
