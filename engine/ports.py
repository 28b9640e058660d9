"""The ports to the outside world.

`engine/azure/` implements them, and the test kit does for tests.
"""

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
"""Returns the skew of the clock if several answers of the store prove it, or None. It sends
requests to the store if there are too few answers."""

Slowdown = Callable[[], float]
"""Returns the factor, at least 1, by which a step or a call may now take longer than configured."""

NewId = Callable[[], str]
"""Returns a text that is unique across all calls and processes."""


class Bus(Protocol):
    """Service Bus, for senders."""

    async def send(self, messages: Sequence[BusMessage]) -> None:
        """Send all messages to their queues, with retries.

        The retries of a message end with its time to live, or with its `patience` if that is
        shorter. Raises `UnavailableError` if a message may not have arrived. Raises
        `QueueRefusedError`, without long retries, if a queue accepts no messages.
        """

    async def probe(self, queues: Sequence[str]) -> None:
        """Prepare to send to these queues.

        Raises `UnavailableError` if the bus cannot be reached.
        """


class TextQueue(Protocol):
    """A Storage Queue, for senders."""

    async def put(self, text: str, pause: timedelta | None = None) -> None:
        """Append one message of at most 64 KiB.

        The message is visible after the pause, which may be up to seven days. Raises
        `UnavailableError`, and `InvalidError` for characters that no queue can hold.
        """

    async def waiting(self) -> int:
        """Return the approximate number of messages.

        Raises `UnavailableError`.
        """

    async def oldest(self) -> datetime | None:
        """Return the time at which the message at the head of the queue was put there.

        Returns None if there is no message. Hidden messages do not count. Raises
        `UnavailableError`.
        """


class EventPublisher(Protocol):
    """Event Grid."""

    async def publish(self, events: Sequence[OperatorEvent]) -> None:
        """Send all events, at most 100.

        Raises `UnavailableError` if an event may not have arrived. Any other error means that an
        event was refused and none has arrived.
        """


class Channel(Protocol):
    """A channel to people: mail, or the webhook of a chat."""

    @property
    def name(self) -> str:
        """The name in settings, rows and logs, such as `smtp`."""

    async def send(self, digest: Digest) -> None:
        """Send one message within half a minute.

        A digest with the id of an earlier one repeats it. Raises `ChannelAwayError` if a later try
        may succeed, even if the message may have arrived. Raises `ChannelRefusedError` if no try
        can succeed.
        """


class RemoteService(Protocol):
    """One remote service, as its agent calls it."""

    async def call(self, request: AgentRequest, timeout_seconds: float) -> Mapping[str, Any]:
        r"""Carry out the request within the time-out, and return the service's result.

        The call raises one of these errors:
        - `TransientError` if a retry may help, or `PermanentError` if no retry can help
        - `ThrottledError` if the service asks all callers to wait
        - `NotAttemptedError` if there was no call
        - `DeferredError` if the service finishes later, and must be called again with the same key
        - `AnswersLaterError` if the service will answer at the callback URL of the request
        """


class Leadership(Protocol):
    """The election of the one supervisor that sweeps (SUP-5)."""

    async def acquire(self) -> bool:
        """Take or renew the lease.

        Returns False while another process holds it.
        """

    def held(self) -> bool:
        """Return whether this process still holds the lease by its own clock.

        The supervisor checks it before each piece of work, and not only at the start.
        """
