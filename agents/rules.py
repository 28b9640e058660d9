"""The time limits of an agent's work on a request, and its replies."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from engine.domain.attempts import NotAttemptedReason
from engine.domain.errors import (
    DeferredError,
    InvalidResultError,
    NotAttemptedError,
    PermanentError,
    RejectedError,
    ThrottledError,
)
from engine.domain.messages import (
    MAX_RETRY_AFTER_SECONDS,
    AgentRequest,
    CompletedReply,
    DeferredReply,
    FailedReply,
    NotAttemptedReply,
)

MAX_DETAIL = 1000
"""The most characters of a reply's detail."""


LONGEST_PAUSE_SECONDS = 5.0
"""The longest pause before a redelivered request, in seconds."""


def pause_before(delivery: int) -> float:
    """Return how many seconds an agent waits before it works on a redelivered request.

    A bus redelivers immediately, up to 2,000 times. Without a pause, a fault in the code that calls
    a service would call it many times a second until the complete-by time. While a worker process
    is replaced, a request uses up about twenty deliveries, for which these pauses are short.
    """
    return min(0.01 * delivery, LONGEST_PAUSE_SECONDS)


def stop_at(request: AgentRequest, margin: timedelta) -> datetime:
    """Return when the agent stops.

    It is before the complete-by time, because clocks differ (AGT-4).
    """
    return request.complete_by - margin


def completed(request: AgentRequest, result: Mapping[str, Any]) -> CompletedReply:
    """Return the reply to a request that the service has carried out."""
    return CompletedReply(**_of(request), result=result)


def failed(
    request: AgentRequest,
    error: PermanentError,
    *,
    was_called: bool,
    was_deferred: bool,
) -> FailedReply:
    """Return the reply to a request that no retry can help (AGT-6).

    The outcome is in doubt if earlier calls had no answer (`was_called`). It is also in doubt if
    the service had deferred a call (`was_deferred`) and has not refused it itself (AGT-11).
    """
    owes_answer = was_deferred and not isinstance(error, RejectedError)
    return FailedReply(
        **_of(request),
        origin=error.origin,
        detail=str(error)[:MAX_DETAIL],
        in_doubt=isinstance(error, InvalidResultError) or was_called or owes_answer,
        **(error.identifiers if isinstance(error, RejectedError) else {}),
    )


def latest_beginning(request: AgentRequest, margin: timedelta, call_timeout: timedelta) -> datetime:
    """Return the latest time at which work on a request may begin.

    Work may begin while half of the request's time, or the time of a whole call, is left. Later, a
    time-out would be charged to an order that had only waited.
    """
    half = request.issued_at + (request.complete_by - request.issued_at) / 2
    return max(half, stop_at(request, margin) - call_timeout)


def not_attempted(
    request: AgentRequest,
    error: NotAttemptedError | ThrottledError,
    *,
    was_called: bool,
    was_deferred: bool,
) -> NotAttemptedReply | DeferredReply:
    """Return the reply to a request that may come again later, without a failure (AGT-8).

    `was_called` says whether earlier calls had no answer. `was_deferred` says whether the service
    still has to give its final answer to an earlier call (AGT-11).
    """
    reason = NotAttemptedReason.THROTTLED if isinstance(error, ThrottledError) else error.reason
    retry_after = max(0.0, error.retry_after.total_seconds())
    in_doubt = was_called or isinstance(error, ThrottledError)
    if was_deferred:
        return DeferredReply(
            **_of(request), reason=reason, retry_after=retry_after, in_doubt=in_doubt
        )
    return NotAttemptedReply(
        **_of(request),
        reason=reason,
        detail=str(error)[:MAX_DETAIL],
        retry_after=retry_after,
        in_doubt=in_doubt,
    )


SHORTEST_PAUSE, LONGEST_PAUSE = timedelta(seconds=1), timedelta(seconds=MAX_RETRY_AFTER_SECONDS)
"""The limits of the pause before an agent calls the service again about deferred work."""


def pause_after(error: DeferredError) -> timedelta:
    """Return the pause that the service requests, within limits (AGT-11)."""
    return min(max(error.retry_after, SHORTEST_PAUSE), LONGEST_PAUSE)


def is_overdue(request: AgentRequest, now: datetime) -> bool:
    """Whether the service should have finished its deferred work by now (AGT-11)."""
    return request.answer_by is not None and now >= request.answer_by


def deferred(request: AgentRequest, error: DeferredError, *, was_called: bool) -> DeferredReply:
    """Return the reply if the service does the work later (AGT-11).

    A scheduler repeats the request.

    `was_called` says whether the agent called the service before and got no answer.
    """
    return DeferredReply(
        **_of(request),
        retry_after=pause_after(error).total_seconds(),
        in_doubt=was_called,
    )


def _of(request: AgentRequest) -> dict[str, Any]:
    """Return the fields of a reply that come from its request."""
    return request.model_dump(include={"order_id", "step", "action", "attempt", "complete_by"})
