"""The ports in memory. Rows of tables are converted by the shipped code."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from engine.azure import Adapters
from engine.azure.clock import new_callback_token, new_id, utc_now
from engine.azure.messaging import queues
from engine.decisions.transitions import OperatorEvent
from engine.domain.errors import ConflictError, UnavailableError
from engine.domain.keys import buckets
from engine.domain.messages import AgentRequest, BusMessage
from engine.ports import Clock, NewId
from engine.storage.orders import OrderStore, Record, columns_of_record, record_of
from engine.storage.tables import (
    Delete,
    ETags,
    Insert,
    Operation,
    Put,
    Replace,
    Stored,
    entity,
    stored_form,
)


class MemoryTable:
    """`Table` in memory."""

    def __init__(self, as_stored: Callable[[Any], Any]) -> None:
        self.as_stored = as_stored
        self.partitions: dict[str, dict[str, tuple[int, Any]]] = {}
        """The rows by partition and row key, each with the number of its writes.

        A test may change them.
        """

    async def submit(self, partition: str, operations: Sequence[Operation]) -> ETags:
        """See `Table.submit`."""
        rows = dict(self.partitions.get(partition, {}))
        for operation in operations:
            _apply(rows, self._stored(operation))
        self.partitions[partition] = rows
        return [
            str(rows[operation.key][0]) if operation.key in rows else None
            for operation in operations
        ]

    def _stored(self, operation: Operation) -> Operation:
        return (
            operation
            if isinstance(operation, Delete)
            else replace(operation, row=self.as_stored(operation.row))
        )

    async def submit_separately(self, partition: str, operations: Sequence[Operation]) -> None:
        for operation in operations:
            with suppress(ConflictError):
                await self.submit(partition, [operation])

    async def get(self, partition: str, key: str) -> Stored | None:
        count, row = self.partitions.get(partition, {}).get(key, (0, None))
        return None if row is None else Stored(key, row, str(count))

    async def rows(
        self, partition: str, start: str, end: str, limit: int | None = None
    ) -> list[Stored]:
        rows = self.partitions.get(partition, {})
        found = sorted(key for key in rows if start <= key < end)[
            : None if limit is None else max(limit, 0)
        ]
        return [Stored(key, rows[key][1], str(rows[key][0])) for key in found]


def _apply(rows: dict[str, tuple[int, Any]], operation: Operation) -> None:
    count = rows[operation.key][0] if operation.key in rows else 0
    match operation:
        case Insert(key) if count:
            raise ConflictError(f"row {key} exists")
        case Replace(key, _, etag) if etag != str(count):
            raise ConflictError(f"row {key} was changed")
        case Delete(key) if not count:
            raise ConflictError(f"row {key} is gone")
        case Delete(key):
            del rows[key]
        case Insert(key, row) | Replace(key, row) | Put(key, row):
            rows[key] = (count + 1, row)


def of_columns() -> MemoryTable:
    """Return a table that stores its rows in the form of Azure."""
    return MemoryTable(lambda row: entity("memory", "", stored_form(row)))


def _checked(record: Record) -> Record:
    """Return the record. Raises `InvalidError` or ValueError if no row can hold it."""
    stored_form(columns_of_record(record))
    return record


class MemoryStateStore(OrderStore):
    """A state store that keeps the records themselves instead of rows.

    The exploration needs them, because it computes hashes of whole worlds.
    """

    table: MemoryTable

    def __init__(self) -> None:
        super().__init__(MemoryTable(_checked), buckets(8))

    @staticmethod
    def columns_of(record: Record) -> Any:
        return record

    @staticmethod
    def record_of(stored: Stored) -> Record:
        """Return the record. A mapping that a test has put in its place is read like a row."""
        return record_of(stored) if isinstance(stored.row, Mapping) else stored.row

    @property
    def rows(self) -> dict[str, dict[str, tuple[int, Record]]]:
        """The records by bucket and row key, each with the number of its writes.

        A test may change them.
        """
        return self.table.partitions

    @rows.setter
    def rows(self, partitions: dict[str, dict[str, tuple[int, Record]]]) -> None:
        self.table.partitions = partitions


class MemoryBus:
    """`Bus` in memory. `sent` holds all messages in the order of sending."""

    def __init__(self) -> None:
        self.sent: list[BusMessage] = []
        self.away = False

    async def probe(self, queues: Sequence[str]) -> None:
        """See `Bus.probe`."""
        if self.away:
            raise UnavailableError

    async def send(self, messages: Sequence[BusMessage]) -> None:
        if self.away:
            raise UnavailableError
        self.sent.extend(messages)


class MemoryTextQueue:
    """`TextQueue` in memory."""

    def __init__(self) -> None:
        self.head_since: datetime | None = None
        self.texts: list[str] = []
        self.pauses: list[timedelta | None] = []

    async def put(self, text: str, pause: timedelta | None = None) -> None:
        """Add a text. A pause is recorded, but has no effect."""
        queues.check(text)
        self.texts.append(text)
        self.pauses.append(pause)

    async def waiting(self) -> int:
        return len(self.texts)

    async def oldest(self) -> datetime | None:
        """Return the time that the test has set."""
        return self.head_since


class MemoryEventPublisher:
    """`EventPublisher` in memory."""

    def __init__(self) -> None:
        self.published: list[OperatorEvent] = []

    async def publish(self, events: Sequence[OperatorEvent]) -> None:
        self.published.extend(events)


@dataclass
class MemoryLease:
    """The lease for which several `MemoryLeadership`s compete."""

    holder: str | None = None
    until: datetime | None = None


class MemoryLeadership:
    """`Leadership` in memory."""

    def __init__(
        self, lease: MemoryLease, instance_id: str, clock: Clock, lease_seconds: float = 30
    ) -> None:
        self.lease = lease
        self._instance_id = instance_id
        self._clock = clock
        self._lease_time = timedelta(seconds=lease_seconds)

    async def acquire(self) -> bool:
        """See `Leadership.acquire`."""
        free = self.lease.until is None or self._clock() >= self.lease.until
        if free or self.lease.holder == self._instance_id:
            self.lease.holder, self.lease.until = (
                self._instance_id,
                self._clock() + self._lease_time,
            )
        return self.held()

    def held(self) -> bool:
        until = self.lease.until
        return (
            self.lease.holder == self._instance_id and until is not None and self._clock() < until
        )


@dataclass
class MemoryRemoteService:
    """`RemoteService` in memory. It raises the errors in `failures`, then returns `answer`."""

    answer: Mapping[str, Any] = field(default_factory=lambda: {"reference": "r-1"})
    failures: list[Exception] = field(default_factory=list)
    calls: list[AgentRequest] = field(default_factory=list)

    async def call(self, request: AgentRequest, timeout_seconds: float) -> Mapping[str, Any]:
        del timeout_seconds
        self.calls.append(request)
        if self.failures:
            raise self.failures.pop(0)
        return self.answer


def in_memory(
    *,
    clock: Clock = utc_now,
    new_id: NewId = new_id,
    new_callback_token: NewId = new_callback_token,
    instance_id: str = "memory",
) -> Adapters:
    """Make all ports in memory."""

    async def close() -> None:
        """Nothing is open."""

    async def right() -> None:
        """There is one clock."""

    return Adapters(
        table=cache(lambda _: of_columns()),
        queue=cache(lambda _: MemoryTextQueue()),
        bus=MemoryBus(),
        events=MemoryEventPublisher(),
        leadership=MemoryLeadership(MemoryLease(), instance_id, clock),
        services=defaultdict(MemoryRemoteService),
        clock=clock,
        clock_check=right,
        new_id=new_id,
        new_callback_token=new_callback_token,
        close=close,
    )
