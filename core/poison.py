"""Messages that nobody could read, as they are kept for an operator (SUB-4)."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class PoisonMessage:
    """One message in a poison queue."""

    source: str
    """The queue that it came from, and goes back to."""
    message_id: str
    """Names it among those of its queue."""
    body: bytes
    reason: str = ""
    """Empty if the functions host gave it up, which says no more than that it failed too often."""
    kept_at: str = ""
    correlation_id: str | None = None
    """Of a Service Bus message; None if it had none, or if that could not be told."""
    shortened: bool = False
    """Whether it was too long to be kept whole: it can be looked at, but not put back."""
