"""The ports for the explorer. Every call is an effect."""

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
"""The pause before an agent calls the service again about deferred work, unless it calls back."""


class Store:
    """`OrderStore` whose methods stop the handler."""

    buckets = ("b00",)
    read_buckets = OrderStore.read_buckets

    async def load(self, order_id: str) -> Any:
        """See `OrderStore.load`."""
        return await PortCall("load", (order_id,))

    async def history(self, order_id: str) -> Any:
        return await PortCall("history", (order_id,))

    async def commit(self, transition: Transition) -> Any:
        return await PortCall("commit", (transition,))

    async def committed(self, transition: Transition) -> Any:
        return await PortCall("committed", (transition,))

    async def note(self, note: Note) -> None:
        await PortCall("note", (note,))

    async def work_items(self, bucket: str, start: str, end: str, limit: int) -> Any:
        return await PortCall("work_items", (bucket, start, end, limit))

    async def work_items_by_bucket(self, start: str, end: str, limit: int) -> Any:
        return [await self.work_items(bucket, start, end, limit) for bucket in self.buckets]

    async def announce(self, bucket: str, event: OperatorEvent) -> None:
        await PortCall("announce", (bucket, event))

    async def postpone(self, bucket: str, key: str, row: IndexRow) -> Any:
        return await PortCall("postpone", (bucket, key, row))

    async def confirm(self, bucket: str, keys: Iterable[str]) -> None:
        await PortCall("confirm", (bucket, tuple(keys)))


class ExploredBus:
    """`Bus` for the explorer."""

    async def send(self, messages: Iterable[BusMessage]) -> None:
        await PortCall("send", (tuple(messages),))

    async def probe(self, queues: Sequence[str]) -> None:
        """Fail, because no handler may probe."""
        raise AssertionError(queues)


class Publisher:
    """`EventPublisher` for the explorer."""

    async def publish(self, events: Sequence[OperatorEvent]) -> None:
        await PortCall("publish", (tuple(events),))


class Remote:
    """`RemoteService` for the explorer."""

    async def call(self, request: AgentRequest, timeout_seconds: float) -> Answer:
        answer: Answer = await PortCall("call", (request, timedelta(seconds=timeout_seconds)))
        return answer


class Poison:
    """`PoisonStore` for the explorer."""

    async def put(self, source: str, body: bytes, reason: str, arrival: Any) -> None:
        del arrival
        await PortCall("poison", (source, body, reason))


class ExploredLeadership:
    """`Leadership` by the time that has passed at the holder, like the blob lease."""

    def __init__(self, tape: Tape, slot: str) -> None:
        self._tape = tape
        self._slot = slot
        self._until: datetime | None = None

    async def acquire(self) -> bool:
        """See `Leadership.acquire`."""
        self._until = await PortCall("acquire", (self._slot,))
        return self._until is not None

    def held(self) -> bool:
        return self._until is not None and self._tape.read("now") < self._until


class ExploredCircuitBreaker:
    """The circuit of an agent's instance. The world decides whether it is open."""

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
        del order_id
        self.admit()
        yield


class NoBulkhead:
    """A service that accepts any number of calls. A wait for a slot would equal slowness."""

    @asynccontextmanager
    async def turn(self, latest: datetime) -> AsyncIterator[None]:
        del latest
        yield


@dataclass(kw_only=True)
class Reporter(HealthReporter):
    """Reports which requests are begun, as an effect.

    Faults are reported only if a decision depends on them: for a first attempt, which does not
    count without one, for a request that a gateway rejected, and if services hang.
    """

    hangs: bool = False

    async def turned_away(self) -> None:
        """Report nothing."""

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
        await self.attempt_without_result(request, "")

    async def _publish(self) -> None:
        with suppress(UnavailableError):
            await PortCall("say", tuple(self._begun))


class AgentHealths:
    """`AgentHealthLog` with begun requests, open circuits and silent agents."""

    async def publish(self, health: AgentHealth, before: AgentHealth | None = None) -> None:
        """Record the report of a supervisor that an agent is silent."""
        del before
        await PortCall("silence", (health,))

    async def since(self, moment: datetime) -> Any:
        del moment
        return await PortCall("health")


class Sweeps:
    """`SweepLog` that is never read, because it does not matter for correctness."""

    async def record(self, sweep: Any) -> None:
        del sweep
