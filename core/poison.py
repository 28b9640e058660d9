"""Messages that nobody could read, as they are kept for an operator (SUB-4)."""

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrival:
    """What tells a message from every other of its queue, and every delivery of it tells alike."""

    at: datetime
    number: str = ""
    """The id or sequence number that its queue gave it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PoisonMessage:
    """One message that is kept."""

    source: str
    """The queue that it came from, and goes back to."""
    message_id: str
    """Names it among those of its queue, and sorts by the time at which it arrived."""
    body: bytes
    reason: str
    at: datetime
    """When it arrived on its queue."""
    correlation_id: str | None = None
    """Of a Service Bus message; None if it had none, or if that could not be told."""
    shortened: bool = False
    """Whether it was too long to be kept whole: it can be looked at, but not put back."""
    redriven_at: datetime | None = None
    """When somebody last began to put it back."""
    etag: str = field(default="", compare=False)
