"""What the roles need of the outside world: `adapters/` has each of these on Azure, tests have them in memory."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from core.changes import Event
from core.clocks import ClockSkew
from core.messages import AgentRequest, BusMessage

Clock = Callable[[], datetime]
"""Returns the current time, aware and in UTC."""

ClockCheck = Callable[[], Awaitable[ClockSkew | None]]
"""Returns how far the clock is off the store's, if several answers of the store prove that; asks it if need be."""

NewId = Callable[[], str]
"""Returns a text that no other call, anywhere, returns."""


class Bus(Protocol):
    """Service Bus, as the senders see it."""

    async def send(self, messages: Sequence[BusMessage]) -> None:
        """Send all messages to their queues; one with a time to live is tried again for as long as it lives.

        One with `patience` is tried for no longer than that.

        Raises `UnavailableError` if any of them may not have arrived, and `QueueRefusedError`, soon, if it is the queue
        that takes none.
        """

    async def probe(self, queues: Sequence[str]) -> None:
        """Make ready to send to these queues; raises `UnavailableError` when the bus cannot be reached."""


class TextQueue(Protocol):
    """A Storage Queue, as its senders see it."""

    async def put(self, text: str, pause: timedelta | None = None) -> None:
        """Append one message of at most 64 KiB; with a pause, of at most seven days, nobody gets it before that.

        Raises `UnavailableError`, and `InvalidError` for characters that no queue can hold.
        """

    async def waiting(self) -> int:
        """Return about how many messages wait; raises `UnavailableError` when the queue cannot be reached."""


class EventPublisher(Protocol):
    """Event Grid."""

    async def publish(self, events: Sequence[Event]) -> None:
        """Send all events, at most 100; raises `UnavailableError` if any of them may not have arrived.

        Whatever else is raised says that one of them is refused, and none has arrived.
        """


class RemoteService(Protocol):
    """One remote service, as its agent calls it."""

    async def call(self, request: AgentRequest, timeout_seconds: float) -> Mapping[str, Any]:
        """Carry out the request; raises `TransientError`, `RejectedError` or `AskedToWaitError`."""


class Leadership(Protocol):
    """The election of the one supervisor that sweeps (SUP-5)."""

    async def acquire(self) -> bool:
        """Take or renew the lease; False while somebody else holds it."""

    def held(self) -> bool:
        """Whether the lease is still ours by our own clock: ask before each piece of work, not only at the start."""
