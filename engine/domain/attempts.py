"""How an attempt at a step ends, as its agent reports it."""

from enum import StrEnum


class ReplyOutcome(StrEnum):
    """The outcome of an attempt: it says which reply a message is."""

    COMPLETED = "completed"
    FAILED = "failed"
    NOT_ATTEMPTED = "notAttempted"
    DEFERRED = "deferred"


class FailureOrigin(StrEnum):
    """What produced a failure that no retry can help."""

    SERVICE = "service"
    """The service refused."""
    REQUEST = "request"
    """The request is wrong, so the service did nothing."""
    RESULT = "result"
    """No reply can carry what the service answered."""


class NotAttemptedReason(StrEnum):
    """Why an agent did not call its service."""

    CIRCUIT_OPEN = "circuit-open"
    """This instance of the agent makes no calls for a while."""
    THROTTLED = "throttled"
    """The service asked for a pause, so no instance makes calls for a while."""
    BUSY = "busy"
    """Too many calls are in flight."""
    LATE = "late"
    """Too little time was left."""

    @property
    def is_circuit_open(self) -> bool:
        """Whether the circuit is open, of this instance or of all."""
        return self in (NotAttemptedReason.CIRCUIT_OPEN, NotAttemptedReason.THROTTLED)
