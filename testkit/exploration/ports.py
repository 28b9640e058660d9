"""The ports as the explorer sees them: every call is an effect."""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from agents.health import HealthReporter
from engine.decisions.transitions import Note, OperatorEvent, Transition
from engine.domain.attempts import NotAttemptedReason
from engine.domain.errors import NotAttemptedError, UnavailableError
from engine.domain.messages import AgentRequest, BusMessage
from engine.domain.work_index import IndexRow
from engine.storage.agent_health import AgentHealth
from engine.storage.orders import OrderStore
from testkit.exploration.deployment import Answer
from testkit.exploration.driving import PortCall, Tape

RETRY_AFTER = timedelta(seconds=2)
ASK_AGAIN = timedelta(seconds=3)
"""After how long a service is asked again that has accepted a call, unless it calls back."""


class Store:
    """`OrderStore`: each method stops the handler."""

    buckets = ("b00",)
    read_buckets = OrderStore.read_buckets

    async def load(self, order_id: str) -> Any:
        """See `OrderStore.load`."""
        return await PortCall("load", (order_id,))

    async def history(self, order_id: str) -> Any:
        """See `OrderStore.history`."""
        return await PortCall("history", (order_id,))

    async def commit(self, transition: Transition) -> Any:
        """See `OrderStore.commit`."""
        return await PortCall("commit", (transition,))

    async def committed(self, transition: Transition) -> Any:
        """See `OrderStore.committed`."""
        return await PortCall("committed", (transition,))

    async def note(self, note: Note) -> None:
        """See `OrderStore.note`."""
        await PortCall("note", (note,))

    async def work_items(self, bucket: str, start: str, end: str, limit: int) -> Any:
        """See `OrderStore.work_items`."""
        return await PortCall("work_items", (bucket, start, end, limit))

    async def work_items_by_bucket(self, start: str, end: str, limit: int) -> Any:
        """See `OrderStore.work_items_by_bucket`."""
        return [await self.work_items(bucket, start, end, limit) for bucket in self.buckets]

    async def announce(self, bucket: str, event: OperatorEvent) -> None:
        """See `OrderStore.announce`."""
        await PortCall("announce", (bucket, event))

    async def postpone(self, bucket: str, key: str, row: IndexRow) -> Any:
        """See `OrderStore.postpone`."""
        return await PortCall("postpone", (bucket, key, row))

    async def confirm(self, bucket: str, keys: Iterable[str]) -> None:
        """See `OrderStore.confirm`."""
        await PortCall("confirm", (bucket, tuple(keys)))


class ExploredBus:
    """`Bus`."""

    async def send(self, messages: Iterable[BusMessage]) -> None:
        """See `Bus.send`."""
        await PortCall("send", (tuple(messages),))

    async def probe(self, queues: Sequence[str]) -> None:
        """See `Bus.probe`; nobody asks within what one handler does, since that is too soon."""
        raise AssertionError(queues)


class Publisher:
    """`EventPublisher`."""

    async def publish(self, events: Sequence[OperatorEvent]) -> None:
        """See `EventPublisher.publish`."""
        await PortCall("publish", (tuple(events),))


class Remote:
    """`RemoteService`."""

    async def call(self, request: AgentRequest, timeout_seconds: float) -> Answer:
        """See `RemoteService.call`."""
        answer: Answer = await PortCall("call", (request, timedelta(seconds=timeout_seconds)))
        return answer


class Poison:
    """`PoisonStore`."""

    async def put(self, source: str, body: bytes, reason: str, arrival: Any) -> None:
        """See `PoisonStore.put`."""
        del arrival
        await PortCall("poison", (source, body, reason))


class ExploredLeadership:
    """`Leadership`, by the time that has gone by at the holder, as the blob lease does it."""

    def __init__(self, tape: Tape, slot: str) -> None:
        self._tape = tape
        self._slot = slot
        self._until: datetime | None = None

    async def acquire(self) -> bool:
        """See `Leadership.acquire`."""
        self._until = await PortCall("acquire", (self._slot,))
        return self._until is not None

    def held(self) -> bool:
        """See `Leadership.held`."""
        return self._until is not None and self._tape.read("now") < self._until


class ExploredCircuitBreaker:
    """The circuit of an instance of an agent: whether it is open, the world says."""

    open_until = throttled_until = None

    def __init__(self, tape: Tape, agent: str, slot: str) -> None:
        self._tape = tape
        self._names = f"{agent} {slot}"

    def admit(self) -> None:
        """See `CircuitBreaker.admit`."""
        if self._tape.read(f"open {self._names}"):
            reason = NotAttemptedReason.CIRCUIT_OPEN
            raise NotAttemptedError(reason, "the circuit is open", RETRY_AFTER)

    @contextmanager
    def guard(self, order_id: str) -> Iterator[None]:
        """See `CircuitBreaker.guard`."""
        del order_id
        self.admit()
        yield


class NoBulkhead:
    """A service that takes as many calls as one likes: to wait for a turn is to be slow."""

    @asynccontextmanager
    async def turn(self, latest: datetime) -> AsyncIterator[None]:
        """See `Bulkhead.turn`."""
        del latest
        yield


@dataclass(kw_only=True)
class Reporter(HealthReporter):
    """Says which requests are begun, in an effect.

    Of faults it says something only of a first attempt, which counts for nothing without one, where
    a gateway turned the request away, or where services hang: else nothing follows but words.
    """

    hangs: bool = False

    async def turned_away(self) -> None:
        """See `HealthReporter.turned_away`."""

    async def attempt_without_result(
        self,
        request: AgentRequest,
        fault: str,
        *,
        by_gateway: bool = False,
        is_timeout: bool = False,
    ) -> None:
        """See `HealthReporter.attempt_without_result`."""
        del fault
        if request.attempt == 1 or by_gateway or self.hangs:
            with suppress(UnavailableError):
                await PortCall("report", (request.request_id, by_gateway, is_timeout))

    async def answers_later(self, request: AgentRequest) -> None:
        """See `HealthReporter.answers_later`."""
        await self.attempt_without_result(request, "")

    async def _publish(self) -> None:
        with suppress(UnavailableError):
            await PortCall("say", tuple(self._begun))


class AgentHealths:
    """`AgentHealthLog`: what was begun, whose circuit is open, and who is silent."""

    async def publish(self, health: AgentHealth, before: AgentHealth | None = None) -> None:
        """See `AgentHealthLog.publish`: a supervisor records a silent agent."""
        del before
        await PortCall("silence", (health,))

    async def since(self, moment: datetime) -> Any:
        """See `AgentHealthLog.since`."""
        del moment
        return await PortCall("health")


class Sweeps:
    """`SweepLog` that nobody reads: it is no matter of correctness."""

    async def record(self, sweep: Any) -> None:
        """See `SweepLog.record`."""
        del sweep
