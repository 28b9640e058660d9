"""The ports to the outside world: `engine/azure/` implements each, and for tests the test kit."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from engine.alerts.digests import Digest
from engine.decisions.transitions import OperatorEvent
from engine.domain.clocks import ClockSkew
from engine.domain.messages import AgentRequest, BusMessage

Clock = Callable[[], datetime]
"""Returns the current time, aware and in UTC."""

ClockCheck = Callable[[], Awaitable[ClockSkew | None]]
"""Returns how far the clock is off, if several answers of the store prove it; None otherwise.

It sends requests to the store if there are too few answers.
"""

Slowdown = Callable[[], float]
"""Returns the factor, at least 1, by which a step or a call may take longer than configured now."""

NewId = Callable[[], str]
"""Returns a text that is unique across all calls and processes."""


class Bus(Protocol):
    """Service Bus, as the senders see it."""

    async def send(self, messages: Sequence[BusMessage]) -> None:
        """Send all messages to their queues, with retries.

        The retries of a message end with its time to live, or with its `patience` if that is less.

        Raises `UnavailableError` if any message may not have arrived, and `QueueRefusedError`,
        without long retries, if a queue accepts none.
        """

    async def probe(self, queues: Sequence[str]) -> None:
        """Prepare to send to these queues; raises `UnavailableError` if the bus is not reached."""


class TextQueue(Protocol):
    """A Storage Queue, as its senders see it."""

    async def put(self, text: str, pause: timedelta | None = None) -> None:
        """Append one message of at most 64 KiB; it is visible after the pause (at most seven days).

        Raises `UnavailableError`, and `InvalidError` for characters that no queue can hold.
        """

    async def waiting(self) -> int:
        """Return the approximate number of messages; raises `UnavailableError`."""

    async def oldest(self) -> datetime | None:
        """Return when the message at the head was put there, which nobody has taken yet.

        None if there is none; messages that are hidden do not count. Raises `UnavailableError`.
        """


class EventPublisher(Protocol):
    """Event Grid."""

    async def publish(self, events: Sequence[OperatorEvent]) -> None:
        """Send all events, at most 100; raises `UnavailableError` if any may not have arrived.

        Any other error means that one of them was refused and that none has arrived.
        """


class Channel(Protocol):
    """A way to reach people: mail, or the webhook of a chat."""

    @property
    def name(self) -> str:
        """Its name in settings, rows and logs, such as `smtp`."""

    async def send(self, digest: Digest) -> None:
        """Send one message within half a minute; a digest with the id of another repeats it.

        Raises `ChannelAwayError` if a later try may succeed, also if the message perhaps arrived,
        and `ChannelRefusedError` if none will.
        """


class RemoteService(Protocol):
    """One remote service, as its agent calls it."""

    async def call(self, request: AgentRequest, timeout_seconds: float) -> Mapping[str, Any]:
        """Carry out the request within the time-out, and return the service's result.

        Raises `TransientError`, or `PermanentError` if no retry can help; `ThrottledError`, or
        `NotAttemptedError` if there was no call; `DeferredError` if the service will do it later,
        and has to be asked again with the same key; `AnswersLaterError` if it will answer over the
        link of the request.
        """


class Leadership(Protocol):
    """The election of the one supervisor that sweeps (SUP-5)."""

    async def acquire(self) -> bool:
        """Take or renew the lease; False while another process holds it."""

    def held(self) -> bool:
        """Whether this process still holds the lease by its own clock.

        The supervisor asks before each piece of work, not only at the start.
        """
