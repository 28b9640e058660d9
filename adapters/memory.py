"""Every port in memory: for unit tests, and for the explorer, which copies and hashes whole worlds.

All state stands in plain dicts and lists of immutable values, so that `copy()` of those is a copy of the world.
"""

import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from adapters import Adapters, queues, writes
from adapters.alert_log import alert_key, newest_first
from adapters.archive import archived, order_id_of
from adapters.clock import new_ulid, oldest_order_id, utc_now
from adapters.operations import Delete, Insert, Operation, Put, Replace
from adapters.records import Record, columns_of_record
from adapters.rows import stored_form
from core.agenda import AgendaRow, Kind, all_of
from core.alerts import Acknowledgement, Alert
from core.archive import ArchivedOrder, ArchivePage
from core.changes import Change, Event, HistoryEntry, Note, OutboxEntry
from core.errors import ConflictError, NotSentError, UnavailableError, UnknownAlertError, UnknownMessageError
from core.keys import bucket_of, history_key, history_range, order_range, state_key
from core.measures import Measure
from core.messages import AgentRequest, BusMessage
from core.orders import Snapshot
from core.poison import PoisonMessage
from core.ports import Clock, NewId
from core.sweeps import Sweep
from simulator.rules import Effect, FaultInForce


class MemoryStateStore:
    """`StateStore` in memory. `rows` holds by bucket and row key: how often the row was written, and its record."""

    def __init__(self, rows: Mapping[str, Mapping[str, tuple[int, Record]]] | None = None) -> None:
        self.rows: dict[str, dict[str, tuple[int, Record]]] = {
            bucket: dict(records) for bucket, records in (rows or {}).items()
        }

    async def load(self, order_id: str) -> Snapshot | None:
        """See `StateStore.load`."""
        found = self._range(bucket_of(order_id), *order_range(order_id))
        return writes.snapshot_of((record, str(count)) for _, count, record in found)

    async def commit(self, change: Change) -> Snapshot:
        """See `StateStore.commit`."""
        order_id = change.after.order_id
        self._write(bucket_of(order_id), writes.of_change(change))
        count, _ = self.rows[bucket_of(order_id)][state_key(order_id)]
        return replace(change.recorded(), etag=str(count))

    async def committed(self, change: Change) -> bool:
        """See `StateStore.committed`."""
        order_id = change.after.order_id
        key = history_key(order_id, change.after.state.version)
        _, record = self.rows.get(bucket_of(order_id), {}).get(key, (0, None))
        return isinstance(record, HistoryEntry) and record.change_id == change.entry.change_id

    async def note(self, note: Note) -> None:
        """See `StateStore.note`."""
        self._write_new(bucket_of(note.order_id), writes.of_note(note))

    async def history(self, order_id: str) -> list[HistoryEntry]:
        """See `StateStore.history`."""
        found = self._range(bucket_of(order_id), *history_range(order_id))
        return [record for _, _, record in found if isinstance(record, HistoryEntry)]

    async def agenda(self, bucket: str, start: str, end: str, limit: int) -> list[AgendaRow]:
        """See `StateStore.agenda`."""
        found = self._range(bucket, start, end)[: max(limit, 0)]
        return [record for _, _, record in found if isinstance(record, AgendaRow)]

    async def outbox(self, bucket: str, limit: int) -> list[OutboxEntry]:
        """See `StateStore.outbox`."""
        rows = await self.agenda(bucket, *all_of(Kind.OUTBOX), limit)
        return [OutboxEntry(key=row.key, event=writes.event_of(row)) for row in rows]

    async def postpone(self, bucket: str, key: str, row: AgendaRow) -> None:
        """See `StateStore.postpone`."""
        self._write_new(bucket, [Delete(key), Insert(row.key, row)])

    async def announce(self, bucket: str, event: Event) -> None:
        """See `StateStore.announce`."""
        self._write_new(bucket, [writes.of_announcement(event)])

    async def confirm(self, bucket: str, keys: Sequence[str]) -> None:
        """See `StateStore.confirm`."""
        for key in keys:
            self.rows.get(bucket, {}).pop(key, None)

    def _range(self, bucket: str, start: str, end: str) -> list[tuple[str, int, Record]]:
        rows = self.rows.get(bucket, {})
        return [(key, *rows[key]) for key in sorted(key for key in rows if start <= key < end)]

    def _write_new(self, bucket: str, wanted: Sequence[Operation[Record]]) -> None:
        try:
            self._write(bucket, wanted)
        except ConflictError:
            return  # there already

    def _write(self, bucket: str, wanted: Sequence[Operation[Record]]) -> None:
        rows = dict(self.rows.get(bucket, {}))
        for write in wanted:
            _apply(rows, write)
        self.rows[bucket] = rows


class MemoryArchive:
    """`Archive` on a `MemoryStateStore`, one order to a page."""

    def __init__(self, store: MemoryStateStore) -> None:
        self._store = store
        self._places: dict[str, str] = {}

    async def oldest(self, bucket: str, before: datetime | None, start: str) -> ArchivePage:
        """See `Archive.oldest`."""
        rows, end = self._store.rows.get(bucket, {}), oldest_order_id(bucket, before)
        keys = sorted(key for key in rows if (start or f"{bucket}-") <= key < end)
        if not keys:
            return ArchivePage(orders=[])
        order_id = order_id_of(keys[0])
        own = {key: rows[key][1] for key in keys if order_id_of(key) == order_id}
        return ArchivePage(orders=[archived(order_id, own)], continuation=f"{order_id}~")

    async def remove(self, order: ArchivedOrder) -> None:
        """See `Archive.remove`."""
        rows = self._store.rows[bucket_of(order.order_id)]
        for key in order.keys:
            rows.pop(key, None)

    async def place(self, bucket: str) -> str:
        """See `Archive.place`."""
        return self._places.get(bucket, "")

    async def go_on_from(self, bucket: str, place: str) -> None:
        """See `Archive.go_on_from`."""
        self._places[bucket] = place


def _apply(rows: dict[str, tuple[int, Record]], operation: Operation[Record]) -> None:
    count, _ = rows.get(operation.key, (0, None))
    match operation:
        case Insert(key) if count:
            raise ConflictError(f"row {key} exists")
        case Replace(key, _, etag) if etag != str(count):
            raise ConflictError(f"row {key} was changed")
        case Delete(key) if not count:
            raise ConflictError(f"row {key} is gone")
        case Delete(key):
            del rows[key]
        case Insert(key, record) | Replace(key, record) | Put(key, record):
            stored_form(columns_of_record(record))  # refuses what a table refuses
            rows[key] = (count + 1, record)


class MemoryBus:
    """`Bus` in memory: `sent` holds all messages in the order in which they were sent."""

    def __init__(self) -> None:
        self.sent: list[BusMessage] = []
        self.away = False

    async def probe(self, queues: Sequence[str]) -> None:
        """See `Bus.probe`."""
        if self.away:
            raise UnavailableError

    async def send(self, messages: Sequence[BusMessage]) -> None:
        """See `Bus.send`."""
        if self.away:
            raise NotSentError
        self.sent.extend(messages)


class MemoryTextQueue:
    """`TextQueue` in memory."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def put(self, text: str) -> None:
        """See `TextQueue.put`."""
        queues.check(text)
        self.texts.append(text)

    async def probe(self) -> None:
        """See `TextQueue.probe`: memory is always there."""


class MemoryPoisonQueues:
    """`PoisonQueues` in memory: `kept` holds the messages."""

    def __init__(self) -> None:
        self.kept: list[PoisonMessage] = []
        self._numbers = itertools.count(1)

    async def put(self, source: str, body: bytes, reason: str, correlation_id: str | None = None) -> None:
        """See `PoisonQueues.put`."""
        self.kept.append(
            PoisonMessage(
                source=source,
                message_id=f"m{next(self._numbers)}",
                body=body,
                reason=reason,
                correlation_id=correlation_id,
            )
        )

    async def peek(self, sources: Sequence[str]) -> list[PoisonMessage]:
        """See `PoisonQueues.peek`."""
        return [message for source in sources for message in self.kept if message.source == source]

    async def count(self, sources: Sequence[str]) -> dict[str, int]:
        """See `PoisonQueues.count`."""
        return dict(Counter(message.source for message in self.kept if message.source in sources))

    async def settle(self, source: str, message_id: str, act: Callable[[PoisonMessage], Awaitable[None]]) -> None:
        """See `PoisonQueues.settle`."""
        found = [each for each in self.kept if (each.source, each.message_id) == (source, message_id)]
        if not found:
            raise UnknownMessageError
        self.kept.remove(found[0])  # nobody else sees it meanwhile
        try:
            await act(found[0])
        except BaseException:
            self.kept.append(found[0])
            raise


class MemoryEventPublisher:
    """`EventPublisher` in memory."""

    def __init__(self) -> None:
        self.published: list[Event] = []

    async def publish(self, events: Sequence[Event]) -> None:
        """See `EventPublisher.publish`."""
        self.published.extend(events)


class MemoryAlertLog:
    """`AlertLog` in memory."""

    def __init__(self) -> None:
        self.alerts: dict[str, Alert] = {}

    async def record(self, alert: Event) -> None:
        """See `AlertLog.record`."""
        if all(known.event.event_id != alert.event_id for known in self.alerts.values()):
            key = alert_key(alert)
            self.alerts[key] = Alert(key=key, event=alert)

    async def newest(self, limit: int, after: str = "") -> list[Alert]:
        """See `AlertLog.newest`."""
        return [self.alerts[key] for key in sorted(self.alerts) if key > after][: max(limit, 0)]

    async def acknowledge(self, key: str, acknowledgement: Acknowledgement) -> None:
        """See `AlertLog.acknowledge`."""
        if (alert := self.alerts.get(key)) is None:
            raise UnknownAlertError
        if alert.acknowledged is None:
            self.alerts[key] = replace(alert, acknowledged=acknowledgement)

    async def remove_before(self, time: datetime, most: int) -> int:
        """See `AlertLog.remove_before`."""
        old = [key for key in sorted(self.alerts) if key > f"{newest_first(time)}~"][:most]
        for key in old:
            del self.alerts[key]
        return len(old)


class MemorySubmissionKeys:
    """`SubmissionKeys` in memory."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.bound: dict[str, tuple[datetime, str, str]] = {}

    async def claim(self, key: str, order_id: str, fingerprint: str) -> tuple[str, str]:
        """See `SubmissionKeys.claim`."""
        _, *bound = self.bound.setdefault(key, (self._clock(), order_id, fingerprint))
        return bound[0], bound[1]

    async def remove_before(self, time: datetime) -> int:
        """See `SubmissionKeys.remove_before`."""
        old = [key for key, (at, *_) in self.bound.items() if at < time]
        for key in old:
            del self.bound[key]
        return len(old)


class MemoryAgentMeasures:
    """`AgentMeasures` in memory."""

    def __init__(self) -> None:
        self.published: dict[tuple[str, str], Measure] = {}

    async def publish(self, measure: Measure) -> None:
        """See `AgentMeasures.publish`."""
        self.published[measure.agent, measure.instance] = measure

    async def since(self, moment: datetime) -> list[Measure]:
        """See `AgentMeasures.since`."""
        return [measure for measure in self.published.values() if measure.counts(moment)]


class MemorySweepLog:
    """`SweepLog` in memory."""

    def __init__(self) -> None:
        self.kept: Sweep | None = None
        self._awaited: datetime | None = None

    async def record(self, sweep: Sweep) -> None:
        """See `SweepLog.record`."""
        self.kept = sweep

    async def last(self) -> Sweep | None:
        """See `SweepLog.last`."""
        return self.kept

    async def awaited_since(self, now: datetime) -> datetime:
        """See `SweepLog.awaited_since`."""
        self._awaited = self._awaited or now
        return self._awaited


class MemoryWorkflowLog:
    """`WorkflowLog` in memory."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, int], str] = {}

    async def first(self, name: str, version: int, fingerprint: str) -> str:
        """See `WorkflowLog.first`."""
        return self.kept.setdefault((name, version), fingerprint)


@dataclass
class MemoryLease:
    """The one lease that several `MemoryLeadership`s compete for."""

    holder: str | None = None
    until: datetime | None = None


class MemoryLeadership:
    """`Leadership` in memory."""

    def __init__(self, lease: MemoryLease, instance_id: str, clock: Clock, lease_seconds: float = 30) -> None:
        self.lease = lease
        self._instance_id = instance_id
        self._clock = clock
        self._lease_time = timedelta(seconds=lease_seconds)

    async def acquire(self) -> bool:
        """See `Leadership.acquire`."""
        free = self.lease.until is None or self._clock() >= self.lease.until
        if free or self.lease.holder == self._instance_id:
            self.lease.holder, self.lease.until = self._instance_id, self._clock() + self._lease_time
        return self.held()

    def held(self) -> bool:
        """See `Leadership.held`."""
        until = self.lease.until
        return self.lease.holder == self._instance_id and until is not None and self._clock() < until


@dataclass
class MemoryRemoteService:
    """`RemoteService` in memory: answers `answer`, after raising what stands first in `failures`."""

    answer: Mapping[str, Any] = field(default_factory=lambda: {"reference": "r-1"})
    failures: list[Exception] = field(default_factory=list)
    calls: list[AgentRequest] = field(default_factory=list)

    async def call(self, request: AgentRequest, timeout_seconds: float) -> Mapping[str, Any]:
        """See `RemoteService.call`."""
        del timeout_seconds
        self.calls.append(request)
        if self.failures:
            raise self.failures.pop(0)
        return self.answer


@dataclass
class MemoryLedger:
    """`Ledger` in memory; `forbidden` holds the keys and actions that were undone, and are refused since."""

    calls: list[tuple[str, str, str]] = field(default_factory=list)
    effects: dict[tuple[str, str, str], Effect] = field(default_factory=dict)
    forbidden: set[tuple[str, str, str]] = field(default_factory=set)
    in_force: dict[tuple[str, str], FaultInForce] = field(default_factory=dict)

    async def count_call(self, service: str, key: str, action: str) -> None:
        """See `Ledger.count_call`."""
        self.calls.append((service, key, action))

    async def effect(self, service: str, effect: Effect, *, forbids: str | None) -> Effect | None:
        """See `Ledger.effect`."""
        place = (service, effect.key, effect.action)
        if place in self.forbidden:
            return None
        if forbids:
            self.forbidden.add((service, effect.key, forbids))
        return self.effects.setdefault(place, effect)

    async def contents(self, service: str, order_id: str | None) -> tuple[int, Sequence[Effect]]:
        """See `Ledger.contents`."""
        calls = [call for call in self.calls if call[0] == service and order_id in (None, call[1].partition(":")[0])]
        effects = [
            effect
            for (of, key, _), effect in self.effects.items()
            if of == service and order_id in (None, key.partition(":")[0])
        ]
        return len(calls), sorted(effects, key=lambda effect: effect.at)

    async def faults(self, service: str) -> Sequence[FaultInForce]:
        """See `Ledger.faults`."""
        return [entry for (of, _), entry in self.in_force.items() if of == service]

    async def set_fault(self, service: str, entry: FaultInForce) -> None:
        """See `Ledger.set_fault`."""
        self.in_force[service, entry.fault.key()] = entry

    async def clear_faults(self, service: str, key: str | None) -> None:
        """See `Ledger.clear_faults`."""
        for place in [place for place in self.in_force if place[0] == service and key in (None, place[1])]:
            del self.in_force[place]


def in_memory(*, clock: Clock = utc_now, new_id: NewId = new_ulid, instance_id: str = "memory") -> Adapters:
    """Return all parts in memory."""

    async def close() -> None:
        """Nothing is open."""

    store = MemoryStateStore()
    return Adapters(
        store=store,
        archive=MemoryArchive(store),
        bus=MemoryBus(),
        submissions=MemoryTextQueue(),
        alert_queue=MemoryTextQueue(),
        poison=MemoryPoisonQueues(),
        events=MemoryEventPublisher(),
        alerts=MemoryAlertLog(),
        keys=MemorySubmissionKeys(clock),
        measures=MemoryAgentMeasures(),
        sweeps=MemorySweepLog(),
        known_workflows=MemoryWorkflowLog(),
        leadership=MemoryLeadership(MemoryLease(), instance_id, clock),
        services={name: MemoryRemoteService() for name in ("payment", "payment-backup", "inventory", "shipping")},
        ledger=MemoryLedger(),
        clock=clock,
        new_id=new_id,
        close=close,
    )
