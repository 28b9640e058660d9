"""The ports as the explorer sees them: every call is an effect."""

from datetime import timedelta

from exploration.driving import Effect, Tape


class Store:
    """`StateStore`: each method stops the handler."""

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

    async def outbox(self, bucket, limit):
        return await Effect("outbox", (bucket, limit))

    async def announce(self, bucket, event):
        await Effect("announce", (bucket, event))

    async def confirm(self, bucket, keys):
        await Effect("confirm", (bucket, tuple(keys)))


class Bus:
    """`Bus`."""

    async def send(self, messages):
        await Effect("send", (tuple(messages),))


class Publisher:
    """`EventPublisher`."""

    async def publish(self, events):
        await Effect("publish", (tuple(events),))


class Remote:
    """`RemoteService`."""

    async def call(self, request, timeout_seconds):
        return await Effect("call", (request, timedelta(seconds=timeout_seconds)))


class Poison:
    """`PoisonQueues`."""

    async def put(self, source, body, reason):
        await Effect("poison", (source, body, reason))


class Leadership:
    """`Leadership`, by the holder's own clock, as the blob lease does it."""

    def __init__(self, tape: Tape, slot: str) -> None:
        self._tape = tape
        self._slot = slot
        self._until = None

    async def acquire(self):
        self._until = await Effect("acquire", (self._slot,))
        return self._until is not None

    def held(self):
        return self._until is not None and self._tape.read("now") < self._until


class Measures:
    """`AgentMeasures` that nobody publishes: what a scheduler makes of them is no matter of correctness."""

    async def publish(self, measure):
        del measure

    async def since(self, moment):
        del moment
        return []


class Sweeps:
    """`SweepLog` that nobody reads: it is no matter of correctness."""

    async def record(self, sweep):
        del sweep
