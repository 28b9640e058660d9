"""What spares a remote service: a circuit breaker (AGT-8), a bulkhead (WRK-2), and news of its health (AGT-10)."""

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice

from core.errors import (
    AskedToWaitError,
    CircuitOpenError,
    NotTriedError,
    RejectedError,
    TransientError,
    UnavailableError,
)
from core.gathering import GroupCommit
from core.messages import AgentRequest
from core.ports import Clock
from core.texts import plain, without_particulars
from stores.agent_health import AgentHealth, AgentHealthLog

log = logging.getLogger(__name__)

LATER = timedelta(seconds=1)
"""When a request may come again that found no turn within its time."""


class Bulkhead:
    """How many calls one process may have in flight at a service."""

    def __init__(self, *, in_flight: int, clock: Clock) -> None:
        self.in_flight = in_flight
        self._clock = clock
        self._slots = asyncio.Semaphore(in_flight)

    @asynccontextmanager
    async def turn(self, latest: datetime) -> AsyncIterator[None]:
        """Wait for the turn of one call; raises `NotTriedError` if it does not come before `latest`."""
        left = (latest - self._clock()).total_seconds()
        try:
            async with asyncio.timeout(left):
                await self._slots.acquire()
        except TimeoutError:
            raise NotTriedError("too many calls are in flight", LATER) from None
        try:
            yield
        finally:
            self._slots.release()


GROWS_BY, GROWS_TO = 1.5, 10
"""How much longer the circuit stays open after each try that failed, and how many times as long at most.

Each try is an attempt of an order, and its history tells of all: an outage of a day should not fill it.
"""

ONE_TRIES = timedelta(seconds=1)
"""How long others wait while one call tries whether the circuit may close."""


class CircuitBreaker:
    """Opens when the service fails for one order after another; one order that fails again and again counts once.

    So a fault of one order stops nobody else, and ends in `Error` by its own count of failures. If the service asks to
    be left alone for a while, it opens at once, until then.
    """

    def __init__(self, *, orders: int, open_for: timedelta, clock: Clock) -> None:
        self._orders = orders
        self._open_for = open_for
        self._clock = clock
        self._tries_failed = 0
        self._failed: set[str] = set()
        """Orders for which the service failed since it last worked."""
        self._trying = False
        self.open_until: datetime | None = None
        """Until when no call is made; None while the circuit is closed."""
        self.asked_until: datetime | None = None
        """Until when the service asked for that; None if it has not asked since it last worked."""

    @contextmanager
    def guard(self, order_id: str) -> Iterator[None]:
        """Watch one call; raises `CircuitOpenError` instead of letting it begin while the circuit is open.

        When the time is over, one call at a time may try: if it succeeds, the circuit is closed again.
        """
        trial = self.admit()
        self._trying = trial
        try:
            yield
        except AskedToWaitError as asked:
            self._waits(asked.retry_after)
            raise
        except TransientError:
            self._fails(order_id, trial=trial)
            raise
        except RejectedError:  # the service works, and says no
            self._works(trial=trial)
            raise
        else:
            self._works(trial=trial)
        finally:
            self._trying = self._trying and not trial

    def admit(self) -> bool:
        """Return whether a call that began now would be the one that tries; raises `CircuitOpenError`."""
        if self.open_until is None:
            return False
        if self.asked_until and (left := self.asked_until - self._clock()) > timedelta():
            raise AskedToWaitError("the circuit is open: the service asks not to be called", left)
        if (left := self.open_until - self._clock()) > timedelta():
            raise CircuitOpenError(
                "the circuit is open: the service fails for one order after another", left
            )
        if self._trying:
            raise CircuitOpenError(
                "the circuit is open, and one call tries whether the service works again", ONE_TRIES
            )
        return True

    def _waits(self, retry_after: timedelta) -> None:
        until = self._clock() + retry_after
        self.asked_until = max(until, self.asked_until or until)
        self.open_until = max(until, self.open_until or until)

    def _fails(self, order_id: str, *, trial: bool) -> None:
        self._failed.add(order_id)
        if trial or (self.open_until is None and len(self._failed) >= self._orders):
            self.open_until = self._clock() + self._open_for * min(
                GROWS_TO, GROWS_BY**self._tries_failed
            )
            self._tries_failed += 1

    def _works(self, *, trial: bool) -> None:
        if (
            trial or self.open_until is None
        ):  # else it was opened while this call was under way, and stays so
            self._failed.clear()
            self._tries_failed = 0
            self.open_until = self.asked_until = None


INTERVAL = timedelta(seconds=1)
"""How often an agent at work says how it is doing."""

PATIENCE = timedelta(seconds=1)
"""How long a request waits until that is recorded: it must not suffer from a table that is away."""

SWEPT_BY = timedelta(minutes=2)
"""After a request's time for how long its agent says that it was begun: a supervisor has asked for it by then."""

MOST_BEGUN = 250
"""Requests that a row names, the oldest first: a row takes 32 Ki characters. What is left out is charged to nobody."""

MAX_SAID = 200
"""Characters of what an agent says of a fault."""


SMOOTHING = timedelta(seconds=1)
"""Requests begin in bursts, as others end; what an agent does shows over some seconds."""


class Rate:
    """How many requests an agent begins for each second: a moving average."""

    def __init__(self) -> None:
        self._begun = 0
        self._since: datetime | None = None
        self._average = 0.0

    def count(self) -> None:
        """Take note of one more."""
        self._begun += 1

    def until(self, now: datetime) -> float:
        """Return the rate by now; zero if this was never asked.

        What is asked again within a second is answered the same: too little can have happened in between.
        """
        since, begun = self._since, self._begun
        if since and timedelta() <= now - since < INTERVAL:
            return self._average
        self._since, self._begun = now, 0
        if since is None or now < since:
            self._average = 0.0
        else:
            lately = begun / (now - since).total_seconds()
            share = 1 - math.exp(-(now - since) / SMOOTHING)
            self._average += share * (lately - self._average)
        return self._average


@dataclass(kw_only=True)
class HealthReporter:
    """One agent instance's view of itself, in one row: written once a second at most, and only while there is work.

    What others have to know before they go on is written at once: that the circuit has opened, why an attempt came to
    nothing, and that a request begins which was tried before. That request may kill the process each time it is called;
    written before the call, it is heard of at the latest the second time.
    """

    agent: str
    instance: str
    circuit: CircuitBreaker
    agent_health: AgentHealthLog
    clock: Clock
    _running: int = 0
    _begun: dict[str, datetime] = field(default_factory=dict)
    """By request that has begun and may come to nothing, until when it has time."""
    _fault: str | None = None
    _fault_at: datetime | None = None
    _at_door: bool = False
    _opened_until: datetime | None = None
    """Until when the circuit was open when that was last logged."""
    _rate: Rate = field(default_factory=Rate)
    _said_at: datetime | None = None
    """When a row was last asked for: an ordinary request that comes within a second of that does not wait for it."""
    _row: AgentHealth | None = None
    """The last row that was certainly written."""

    def __post_init__(self) -> None:
        """Let all who wait at the same time share one write."""
        self._writes = GroupCommit[None, None](self._write)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Count a call for as long as it takes."""
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1

    async def begins(self, request: AgentRequest) -> None:
        """Take note of a request whose first call comes next, and say so before it if that is due."""
        self._rate.count()
        self._begun[request.request_id] = request.complete_by
        was_tried = request.attempt > 1
        if self._is_due() or (was_tried and not self._is_heard_of(request)):
            await self._publish()

    def answered(self, request: AgentRequest) -> None:
        """Take note that the reply is on its way.

        If it gets lost, the first time nobody is to blame; an order that loses each reply is at fault itself.
        """
        if request.attempt == 1:
            self._begun.pop(request.request_id, None)

    async def turned_away(self) -> None:
        """Say, before the reply, that the circuit is open: else the request would come straight here again."""
        until = self.circuit.open_until
        if until is None:
            return
        if until != self._opened_until:
            self._opened_until = until
            log.warning("agent.circuit_opened", extra={"agent": self.agent, "until": str(until)})
        if self._row is None or self._row.open_until != until:
            await self._publish()

    async def came_to_nothing(self, fault: str, *, at_door: bool = False) -> None:
        """Say why an attempt had no result within its time, since it has no reply (AGT-4)."""
        self._fault = plain(without_particulars(fault), MAX_SAID)
        self._fault_at, self._at_door = self.clock(), at_door
        await self._publish()

    def _is_due(self) -> bool:
        """Whether the last row is a second old, by a clock that may have been put back since."""
        return self._said_at is None or not timedelta() <= self.clock() - self._said_at < INTERVAL

    def _is_heard_of(self, request: AgentRequest) -> bool:
        """Whether the row names the request already: it was delivered before."""
        return self._row is not None and request.request_id in self._row.begun

    async def _publish(self) -> None:
        self._said_at = self.clock()
        try:
            async with asyncio.timeout(PATIENCE.total_seconds()):
                await self._writes.submit(self.instance, None)
        except (UnavailableError, TimeoutError) as error:
            log.debug("agent.health_not_published", extra={"agent": self.agent, "why": str(error)})

    async def _write(self, _: str, waiting: Sequence[None]) -> Sequence[None]:
        """Write one row for all who wait."""
        row = self._now()
        await self.agent_health.publish(row, self._row)
        self._row = row
        return [None] * len(waiting)

    def _now(self) -> AgentHealth:
        now = self.clock()
        self._begun = {name: until for name, until in self._begun.items() if now < until + SWEPT_BY}
        return AgentHealth(
            agent=self.agent,
            instance=self.instance,
            at=now,
            running=self._running,
            rate=self._rate.until(now),
            begun=tuple(islice(self._begun, MOST_BEGUN)),
            open_until=self.circuit.open_until,
            asked_until=self.circuit.asked_until,
            fault=self._fault,
            fault_at=self._fault_at,
            at_door=self._at_door,
        )
