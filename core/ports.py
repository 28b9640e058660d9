"""What the roles need of the outside world. `adapters/` holds each of these twice: on Azure, and in memory."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from core.agenda import AgendaRow
from core.agent_health import AgentHealth
from core.alerts import Acknowledgement, Alert
from core.archive import ArchivedOrder, ArchivePage
from core.changes import Change, Event, HistoryEntry, Note
from core.messages import AgentRequest, BusMessage
from core.orders import Snapshot
from core.poison import Arrival, PoisonMessage
from core.sweeps import Sweep

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


class Archive(Protocol):
    """All orders by their age, and how they are removed. Every method raises `UnavailableError`."""

    buckets: Sequence[str]
    """The partitions over which orders are spread."""

    async def oldest(self, bucket: str, before: datetime | None, start: str) -> ArchivePage:
        """Return the oldest orders of the bucket, from `start` on if that is not empty.

        With `before`, only those that were made before that time: nothing that is younger is looked at.
        """

    async def remove(self, order: ArchivedOrder) -> None:
        """Remove all rows of an order: those that make it one in one transaction, and then its history.

        Nothing but whole orders is ever seen; a history that a crash leaves over is removed when it is met again.
        """

    async def place(self, bucket: str) -> str:
        """Return from where on whoever removes old orders goes on in the bucket; empty for its beginning."""

    async def go_on_from(self, bucket: str, place: str) -> None:
        """Remember that place, for any instance."""


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


class PoisonStore(Protocol):
    """Where messages go that nobody can read, until an operator has looked at them. All raise `UnavailableError`."""

    async def put(
        self, source: str, body: bytes, reason: str, arrival: Arrival, correlation_id: str | None = None
    ) -> None:
        """Keep the message, which came from the queue `source`; the same one again changes nothing."""

    async def page(self, source: str, limit: int, after: str = "") -> list[PoisonMessage]:
        """Return up to `limit` messages of a queue, oldest first; with `after`, those that follow that id."""

    async def get(self, source: str, message_id: str) -> PoisonMessage:
        """Return one message; raises `UnknownMessageError`."""

    async def mark(self, message: PoisonMessage, redriven_at: datetime) -> None:
        """Keep that it is being put back; raises `ConflictError` unless it is as it was read."""

    async def remove(self, source: str, message_id: str) -> bool:
        """Remove one message; return whether it was there."""

    async def remove_before(self, source: str, time: datetime, most: int) -> int:
        """Remove up to so many of the messages of a queue that arrived before; return how many there were."""


class EventPublisher(Protocol):
    """Event Grid."""

    async def publish(self, events: Sequence[Event]) -> None:
        """Send all events; raises `UnavailableError` if any of them may not have arrived.

        Whatever else is raised says that one of them is refused, and none has arrived.
        """


class AlertLog(Protocol):
    """The alerts that reached the operators."""

    async def record(self, alert: Event) -> None:
        """Keep an alert; one with the same event id changes nothing, whatever its time."""

    async def newest(self, limit: int, after: str = "") -> list[Alert]:
        """Return the last alerts, newest first; with `after`, those that follow the alert of that key."""

    async def acknowledge(self, key: str, acknowledgement: Acknowledgement) -> None:
        """Keep who has taken the alert upon themselves, unless somebody has; raises `UnknownAlertError`."""

    async def remove_before(self, time: datetime, most: int) -> int:
        """Remove up to so many of the alerts that are older; return how many there were."""


class SubmissionKeys(Protocol):
    """Which order a client's `Idempotency-Key` stands for."""

    async def claim(self, key: str, order_id: str, fingerprint: str) -> tuple[str, str]:
        """Bind the key to the order unless it is bound; return the order id and fingerprint that it is bound to."""

    async def remove_before(self, time: datetime) -> int:
        """Forget keys that were bound before that time, if there are very many not all at once; return how many."""


class RemoteService(Protocol):
    """One remote service, as its agent calls it."""

    async def call(self, request: AgentRequest, timeout_seconds: float) -> Mapping[str, Any]:
        """Carry out the request; raises `TransientError` or `RejectedError`."""


class AgentHealthLog(Protocol):
    """What the agents tell of themselves (AGT-10)."""

    async def publish(self, health: AgentHealth) -> None:
        """Replace what this agent instance said before; raises `UnavailableError`."""

    async def since(self, moment: datetime) -> list[AgentHealth]:
        """Return what says something of the time since then (`AgentHealth.counts`); raises `UnavailableError`."""


class SweepLog(Protocol):
    """The last sweep of any supervisor."""

    async def record(self, sweep: Sweep) -> None:
        """Keep the sweep in place of the one before; raises `UnavailableError`."""

    async def last(self) -> Sweep | None:
        """Return the last sweep, None before the first; raises `UnavailableError`."""

    async def awaited_since(self, now: datetime) -> datetime:
        """Return when it was that anybody asked this first: now, if nobody did; raises `UnavailableError`."""


class WorkflowLog(Protocol):
    """What each version of a workflow was when this app first had it."""

    async def first(self, name: str, version: int, fingerprint: str) -> str:
        """Keep the fingerprint unless one is kept; return the one that is. Raises `UnavailableError`."""


class Leadership(Protocol):
    """The election of the one supervisor that sweeps (SUP-5)."""

    async def acquire(self) -> bool:
        """Take or renew the lease; False while somebody else holds it."""

    def held(self) -> bool:
        """Whether the lease is still ours by our own clock: ask before each piece of work, not only at the start."""
