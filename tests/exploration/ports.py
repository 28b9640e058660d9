"""The ports as the explorer sees them: every call is an effect."""

from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta

from agents.protection import HealthReporter
from core.errors import AcceptedError, CircuitOpenError, UnavailableError
from exploration.driving import Effect, Tape
from stores.orders import OrderStore

RETRY_AFTER = timedelta(seconds=2)
ASK_AGAIN = timedelta(seconds=3)


class QueuedError(AcceptedError):
    """What a service raises that has accepted a call, and does it later."""

    def __init__(self, message):
        super().__init__(message, retry_after=ASK_AGAIN)


class Store:
    """`OrderStore`: each method stops the handler."""

    buckets = ("b00",)
    of_each_bucket = OrderStore.of_each_bucket

    async def load(self, order_id):
        return await Effect("load", (order_id,))

    async def commit(self, change):
        return await Effect("commit", (change,))

    async def committed(self, change):
        return await Effect("committed", (change,))

    async def note(self, note):
        await Effect("note", (note,))

    async def agenda(self, bucket, start, end, limit):
        return await Effect("agenda", (bucket, start, end, limit))

    async def agendas(self, start, end, limit):
        return [await self.agenda(bucket, start, end, limit) for bucket in self.buckets]

    async def announce(self, bucket, event):
        await Effect("announce", (bucket, event))

    async def postpone(self, bucket, key, row):
        await Effect("postpone", (bucket, key, row))

    async def confirm(self, bucket, keys):
        await Effect("confirm", (bucket, tuple(keys)))


class Bus:
    """`Bus`."""

    async def send(self, messages):
        await Effect("send", (tuple(messages),))

    async def probe(self, queues):
        """It is there again: nobody asks within what one handler does, since that is too soon."""
        raise AssertionError(queues)


class Publisher:
    """`EventPublisher`."""

    async def publish(self, events):
        await Effect("publish", (tuple(events),))


class Remote:
    """`RemoteService`."""

    async def call(self, request, timeout_seconds):
        return await Effect("call", (request, timedelta(seconds=timeout_seconds)))


class Poison:
    """`PoisonStore`."""

    async def put(self, source, body, reason, arrival):
        del arrival
        await Effect("poison", (source, body, reason))


class Leadership:
    """`Leadership`, by the time that has gone by at the holder, as the blob lease does it."""

    def __init__(self, tape: Tape, slot: str) -> None:
        self._tape = tape
        self._slot = slot
        self._until = None

    async def acquire(self):
        self._until = await Effect("acquire", (self._slot,))
        return self._until is not None

    def held(self):
        return self._until is not None and self._tape.read("now") < self._until


class CircuitBreaker:
    """The circuit of an instance of an agent: whether it is open, the world says."""

    open_until = asked_until = None

    def __init__(self, tape: Tape, agent: str, slot: str) -> None:
        self._tape = tape
        self._names = f"{agent} {slot}"

    def admit(self):
        if self._tape.read(f"open {self._names}"):
            raise CircuitOpenError("the circuit is open", RETRY_AFTER)

    @contextmanager
    def guard(self, order_id):
        del order_id
        self.admit()
        yield


class NoBulkhead:
    """A service that takes as many calls as one likes: to wait for a turn is to be slow."""

    @asynccontextmanager
    async def turn(self, latest):
        del latest
        yield


class Reporter(HealthReporter):
    """Says which requests are begun, in an effect; of what else it could say, nothing follows but words."""

    async def turned_away(self):
        pass

    async def came_to_nothing(self, fault, *, at_door=False):
        del fault, at_door

    async def _publish(self):
        with suppress(UnavailableError):
            await Effect("say", tuple(self._begun))


class AgentHealths:
    """`AgentHealthLog`: what was begun, and whose circuit is open."""

    async def since(self, moment):
        del moment
        return await Effect("heard")


class Sweeps:
    """`SweepLog` that nobody reads: it is no matter of correctness."""

    async def record(self, sweep):
        del sweep
