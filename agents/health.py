"""The health reports of an agent (AGT-10)."""

import asyncio
import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from agents.circuit_breaker import CircuitBreaker
from engine.concurrency import GroupCommit
from engine.domain.errors import UnavailableError
from engine.domain.messages import AgentRequest
from engine.domain.texts import plain, without_particulars
from engine.ports import Clock
from engine.storage.agent_health import AgentHealth, AgentHealthLog, AttemptFault

log = logging.getLogger(__name__)

INTERVAL = timedelta(seconds=1)
"""The time between two health reports of an agent that works."""

PATIENCE = timedelta(seconds=1)
"""The longest time that a request waits for a report to be written, or for others to be read.

An unavailable table must not stop the request.
"""

SWEPT_BY = timedelta(minutes=2)
"""How long after its complete-by time a request is reported as begun, because sweeps need it."""

MOST_BEGUN = 250
"""The most requests in a report, because a row holds 32 Ki characters.

The oldest come first. Requests whose services answer at their callback URL come last. Failures of
requests that are left out are not counted.
"""

MAX_FAULT_TEXT = 200
"""The most characters of a reported fault."""

NOT_ANSWERED = "the service accepted the work, but has not called back"
"""The fault of an attempt whose service has not yet answered at its callback URL (ANS-8)."""

MOST_TEXTS = 10
"""The most different fault texts in a report, because a row holds 32 Ki characters.

The newest come first. The faults of other requests are reported without their texts.
"""


SMOOTHING = timedelta(seconds=1)
"""The time constant of the average. Answers come in bursts."""


class Rate:
    """The requests per second to which an agent gets an answer, as a moving average.

    A call that times out does not count, so fewer requests are sent to a service that does not
    answer.
    """

    def __init__(self) -> None:
        self._answered = 0
        self._since: datetime | None = None
        self._average = 0.0

    def count(self) -> None:
        self._answered += 1

    def until(self, now: datetime) -> float:
        """Return the rate up to now, per second. Zero on the first call.

        Within a second the rate stays the same, because the sample would be too small.
        """
        since, answered = self._since, self._answered
        if since and timedelta() <= now - since < INTERVAL:
            return self._average
        self._since, self._answered = now, 0
        if since is None or now < since:
            self._average = 0.0
        else:
            lately = answered / (now - since).total_seconds()
            share = 1 - math.exp(-(now - since) / SMOOTHING)
            self._average += share * (lately - self._average)
        return self._average


@dataclass(frozen=True, slots=True)
class _Fault:
    """The fault of an attempt that ended without a result."""

    text: str
    by_gateway: bool = False
    timed_out_at: datetime | None = None
    """When the attempt timed out. None if the fault is not a time-out."""


@dataclass(kw_only=True)
class HealthReporter:
    """Reports the health of an agent instance in one row, at most once a second while it works.

    Four events are reported immediately:

    * the circuit has opened,
    * an attempt ended without a result,
    * a service will answer at its callback URL,
    * a request begins that was attempted before.

    A request may crash the process at each call. Because it is reported before the call, its second
    attempt shows this at the latest.
    """

    agent: str
    instance: str
    circuit: CircuitBreaker
    agent_health: AgentHealthLog
    clock: Clock
    _running: int = 0
    _begun: dict[str, datetime] = field(default_factory=dict)
    """The complete-by time of each request that has begun and may still time out."""
    _over_links: set[str] = field(default_factory=set)
    """The begun requests whose services answer at their callback URL, without a reply of this
    agent."""
    _faults: dict[str, _Fault] = field(default_factory=dict)
    """The fault of each begun request that ended without a result."""
    _opened_until: datetime | None = None
    """The end of the circuit's open time that was logged last."""
    _rate: Rate = field(default_factory=Rate)
    _reported_at: datetime | None = None
    """When the last report was begun. For a second after it, ordinary requests need no new report.
    """
    _row: AgentHealth | None = None
    """The last row that was certainly written."""

    def __post_init__(self) -> None:
        """Let all requests that wait at the same time share a write."""
        self._writes = GroupCommit[None, None](self._write)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Count a request as running while the block runs."""
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1

    async def request_started(self, request: AgentRequest) -> None:
        """Record a request before its first call. If a report is due, report it before the call."""
        self._begun[request.request_id] = request.complete_by
        was_tried = request.attempt > 1
        if self._is_due() or (was_tried and not self._is_reported(request)):
            await self._publish()

    def replied(self, request: AgentRequest, *, is_answer: bool) -> None:
        """Record that the reply was sent. `is_answer` says whether the service answered.

        The first attempt is then no longer reported as begun: if its reply is lost, no failure is
        counted. Later attempts stay reported, because an order may itself be the reason why each
        reply is lost.
        """
        if is_answer:
            self._rate.count()
        if request.attempt == 1:
            self._begun.pop(request.request_id, None)

    async def answers_later(self, request: AgentRequest) -> None:
        """Report a request that is answered at its callback URL (ANS-8).

        The agent may be idle afterwards, so the report cannot wait. If no answer comes, this is the
        fault of the attempt. No reply of this agent can still be on its way.
        """
        self._rate.count()
        self._over_links.add(request.request_id)
        self._faults[request.request_id] = _Fault(NOT_ANSWERED)
        if len(self._begun) <= MOST_BEGUN:
            await self._publish()

    async def turned_away(self) -> None:
        """Report the open circuit before the reply, or the request would come back immediately."""
        until = self.circuit.open_until
        if until is None:
            return
        if until != self._opened_until:
            self._opened_until = until
            log.warning("agent.circuit_opened", extra={"agent": self.agent, "until": str(until)})
        if self._row is None or self._row.open_until != until:
            await self._publish()

    async def attempt_without_result(
        self,
        request: AgentRequest,
        fault: str,
        *,
        by_gateway: bool = False,
        is_timeout: bool = False,
    ) -> None:
        """Report the fault of an attempt without a result. It has no reply (AGT-4)."""
        self._faults[request.request_id] = _Fault(
            text=plain(without_particulars(fault), MAX_FAULT_TEXT),
            by_gateway=by_gateway,
            timed_out_at=self.clock().replace(microsecond=0) if is_timeout else None,
        )
        await self._publish()

    def _is_due(self) -> bool:
        """Whether the last report is a second old, or the clock was put back since then."""
        return (
            self._reported_at is None
            or not timedelta() <= self.clock() - self._reported_at < INTERVAL
        )

    def _is_reported(self, request: AgentRequest) -> bool:
        """Whether the last row names the request, which was then delivered before."""
        return self._row is not None and request.request_id in self._row.begun

    async def _publish(self) -> None:
        self._reported_at = self.clock()
        try:
            async with asyncio.timeout(PATIENCE.total_seconds()):
                await self._writes.submit(self.instance, None)
        except (UnavailableError, TimeoutError) as error:
            log.debug("agent.health_not_published", extra={"agent": self.agent, "why": str(error)})

    async def _write(self, _: str, waiting: Sequence[None]) -> Sequence[None]:
        """Write one row for all waiting requests."""
        row = self._now()
        await self.agent_health.publish(row, self._row)
        self._row = row
        return [None] * len(waiting)

    def _now(self) -> AgentHealth:
        now = self.clock()
        self._begun = {name: until for name, until in self._begun.items() if now < until + SWEPT_BY}
        self._over_links &= self._begun.keys()
        self._faults = {name: fault for name, fault in self._faults.items() if name in self._begun}
        others_first = sorted(self._begun, key=self._over_links.__contains__)
        begun = tuple(others_first[:MOST_BEGUN])
        return AgentHealth(
            agent=self.agent,
            instance=self.instance,
            at=now,
            running=self._running,
            rate=self._rate.until(now),
            begun=begun,
            open_until=self.circuit.open_until,
            paused_until=self.circuit.throttled_until,
            faults=tuple(_grouped(self._faults, begun)),
        )


def _grouped(faults: dict[str, _Fault], begun: Sequence[str]) -> Iterator[AttemptFault]:
    """Yield the faults of these requests, newest first. Requests with equal faults share an entry.

    A fault without room for its text keeps the parts that matter for decisions: whether a gateway
    answered, and when the attempt timed out.
    """
    groups: dict[tuple[str, bool, bool], dict[str, _Fault]] = {}
    texts: set[str] = set()
    reported = set(begun)
    for request, fault in reversed(faults.items()):
        if request not in reported:
            continue
        if len(texts) < MOST_TEXTS:
            texts.add(fault.text)
        text = fault.text if fault.text in texts else ""
        group = text, fault.by_gateway, fault.timed_out_at is not None
        groups.setdefault(group, {})[request] = fault
    for (text, by_gateway, _), found in groups.items():
        times = tuple(fault.timed_out_at for fault in found.values() if fault.timed_out_at)
        yield AttemptFault(
            text=text,
            by_gateway=by_gateway,
            requests=tuple(found),
            timed_out_at=times or None,
        )
