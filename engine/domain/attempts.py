"""The outcomes of an attempt at a step, as its agent reports them."""

from enum import StrEnum


class ReplyOutcome(StrEnum):
    """The outcome of an attempt. It selects the model of the reply."""

    COMPLETED = "completed"
    FAILED = "failed"
    NOT_ATTEMPTED = "notAttempted"
    DEFERRED = "deferred"


class FailureOrigin(StrEnum):
    """The source of a failure that no retry can repair."""

    SERVICE = "service"
    """The service refused the request."""
    REQUEST = "request"
    """The request is invalid, so the service did nothing."""
    RESULT = "result"
    """The service answered, but no reply can carry the answer."""


class NotAttemptedReason(StrEnum):
    """The reason why an agent did not call its service."""

    CIRCUIT_OPEN = "circuit-open"
    """The circuit of this agent instance is open, so it makes no calls for a while."""
    THROTTLED = "throttled"
    """The service requested a pause, so no instance of the agent makes calls for a while."""
    BUSY = "busy"
    """The agent has too many calls in flight."""
    LATE = "late"
    """Too little time was left before the complete-by time."""

    @property
    def is_circuit_open(self) -> bool:
        """Whether the circuit of this instance, or of all instances, is open."""
        return self in (NotAttemptedReason.CIRCUIT_OPEN, NotAttemptedReason.THROTTLED)
