"""What the roles need of the outside world: `adapters/` has each of these on Azure, tests have them in memory."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from core.agenda import AgendaRow
from core.changes import Change, Event, HistoryEntry, Note
from core.messages import AgentRequest, BusMessage
from core.orders import Snapshot

Clock = Callable[[], datetime]
"""Returns the current time, aware and in UTC."""

NewId = Callable[[], str]
"""Returns a text that no other call, anywhere, returns."""


class StateStore(Protocol):
    """The durable record of every order. Every method raises `UnavailableError` when the store cannot be reached."""

    buckets: Sequence[str]
    """The partitions over which orders are spread."""

    async def load(self, order_id: str) -> Snapshot | None:
        """Return the order with its state and steps, without its history; None if there is no such order.

        Raises `UnreadableRowError` if one of its rows is missing or cannot be read.
        """

    async def commit(self, change: Change) -> Snapshot:
        """Write all rows of the change, or none; return the order as it is now, with its new ETag.

        Raises `ConflictError` when another writer was first, or, after a lost answer, it was this very change: ask
        `committed`. After an `UnavailableError` it is unknown whether the change was written.
        """

    async def committed(self, change: Change) -> bool:
        """Return whether the history shows this very change as the one that made its version."""

    async def note(self, note: Note) -> None:
        """Append to the history, and to the outbox, without a transition; the same note again changes nothing."""

    async def history(self, order_id: str) -> list[HistoryEntry]:
        """Return the whole history, oldest first."""

    async def agenda(self, bucket: str, start: str, end: str, limit: int) -> list[AgendaRow]:
        """Return up to `limit` obligations of the bucket with start <= key < end, in key order.

        A row that cannot be read comes with its `fault`: it concerns nobody but its order.
        """

    async def agendas(self, start: str, end: str, limit: int) -> list[list[AgendaRow]]:
        """Return what `agenda` does of every bucket; raises `ExceptionGroup` if one cannot be read."""

    async def postpone(self, bucket: str, key: str, row: AgendaRow) -> None:
        """Put an obligation in the place of another, both or neither; if that one is met by now, nothing changes.

        If the new one stands there already, it stands there once.
        """

    async def announce(self, bucket: str, event: Event) -> None:
        """Put an event that belongs to no recorded order into the outbox; the same event again changes nothing."""

    async def confirm(self, bucket: str, keys: Sequence[str]) -> None:
        """Remove outbox rows whose content was sent; those that are gone already are passed over."""


class Bus(Protocol):
    """Service Bus, as the senders see it."""

    async def send(self, messages: Sequence[BusMessage]) -> None:
        """Send all messages to their queues; one with a time to live is tried again for as long as it lives.

        Raises `UnavailableError` if any of them may not have arrived, `QueueRefusedError` if it is the queue that
        takes none, and `NotSentError` if certainly none has arrived, nor will; that is told after their `patience`.
        """

    async def probe(self, queues: Sequence[str]) -> None:
        """Make ready to send to these queues; raises `UnavailableError` when the bus cannot be reached."""


class TextQueue(Protocol):
    """A Storage Queue, as its senders see it."""

    async def put(self, text: str) -> None:
        """Append one message of at most 64 KiB.

        Raises `UnavailableError`, and `InvalidError` for characters that no queue can hold.
        """

    async def probe(self) -> None:
        """Ask for next to nothing; raises `UnavailableError` when the queue cannot be reached."""


class EventPublisher(Protocol):
    """Event Grid."""

    async def publish(self, events: Sequence[Event]) -> None:
        """Send all events; raises `UnavailableError` if any of them may not have arrived.

        Whatever else is raised says that one of them is refused, and none has arrived.
        """


class RemoteService(Protocol):
    """One remote service, as its agent calls it."""

    async def call(self, request: AgentRequest, timeout_seconds: float) -> Mapping[str, Any]:
        """Carry out the request; raises `TransientError` or `RejectedError`."""


class Leadership(Protocol):
    """The election of the one supervisor that sweeps (SUP-5)."""

    async def acquire(self) -> bool:
        """Take or renew the lease; False while somebody else holds it."""

    def held(self) -> bool:
        """Whether the lease is still ours by our own clock: ask before each piece of work, not only at the start."""
