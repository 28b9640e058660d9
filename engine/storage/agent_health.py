"""The health of the agents, in table `agents`: one row for each instance, sorted by expiry time."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import (
    AwareDatetime,
    FiniteFloat,
    PlainSerializer,
    SerializationInfo,
    WithJsonSchema,
)

from engine.domain.keys import LAST, key_part, sortable
from engine.domain.messages import order_id_in
from engine.storage.tables import Delete, Operation, Put, RowMapper, Table, columns_of, read_rows

OPERATOR = "operator"
"""The instance name in rows that an operator writes to pause an agent."""

FRESH = timedelta(seconds=15)
"""How long an instance's report counts. Instances report when a request begins, and calls take
time."""

SILENCE = timedelta(minutes=10)
"""How long the finding that an agent is silent counts, if no further request reaches the agent.

This must be longer than the longest time between two findings while orders wait. That time is the
sum of the pause before a probe (or of the pause of the order that is sent, SCH-16), the longest
time of its attempt, and a sweep.
"""

PROBE_REQUESTS = 3
"""How many requests are sent to test whether an agent works again, or can do more than before."""

PROBE_PAUSE_SHARE = 0.25
"""The pause before the next probe requests to a silent agent, as a share of its silence (SUP-10).
"""

SHORTEST_PROBE_PAUSE, LONGEST_PROBE_PAUSE = timedelta(seconds=1), timedelta(minutes=2)
"""The limits of the pause before probe requests."""

KEPT = timedelta(hours=1)
"""How long an expired row is kept.

This must be longer than any step takes: after a time-out, the supervisor looks for reports that the
agent made since the step started.
"""


OVERLOAD_ORDERS = 3
"""An agent is overloaded if its calls time out for this many different orders (AGT-8)."""


def _short(time: datetime, info: SerializationInfo) -> datetime | int:
    """Return the time as seconds since 1970 for a row."""
    # A row may hold hundreds of these times, so they are kept short.
    return time if info.mode_is_json() else int(time.timestamp())


WholeSecond = Annotated[
    AwareDatetime,
    PlainSerializer(_short, Any),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""A time without fractions of a second."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptFault:
    """A fault by which attempts ended without a result, with the requests of these attempts."""

    text: str
    """The text of the fault. It is empty if the report has no room for it."""
    by_gateway: bool = False
    """Whether a gateway or proxy rejected the last call before it reached the service."""
    requests: tuple[str, ...]
    """The ids of the requests. Each names an order, a step and an attempt."""
    timed_out_at: tuple[WholeSecond, ...] | None = None
    """When the attempt of each request timed out, in the order of `requests`.

    None if the fault is not a time-out, but an answer or a failed connection.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentHealth:
    """The health of one instance of an agent (AGT-10)."""

    agent: str
    """The name of the agent."""
    instance: str
    """The instance of the agent. In the row of a pause it is `operator`."""
    at: AwareDatetime
    """The time at which the row was written."""
    running: int = 0
    """The number of calls in progress."""
    rate: FiniteFloat = 0.0
    """The number of answered requests per second, averaged over a few seconds."""
    begun: tuple[str, ...] = ()
    """The ids of the requests that the instance has begun and that may still end without a result.
    """
    open_until: AwareDatetime | None = None
    """The time until which the instance makes no calls, because its circuit is open."""
    paused_until: AwareDatetime | None = None
    """The end of the pause that the service or an operator requested.

    It applies to all instances.
    """
    faults: tuple[AttemptFault, ...] = ()
    """The faults by which begun requests ended without a result, newest first, as JSON."""
    unresponsive_since: AwareDatetime | None = None
    """The time since which the agent has been silent. Only a row that a supervisor wrote has it."""
    paused_by: str | None = None
    """The operator who paused or resumed the agent (OPR-9). After a resume, `PausedUntil` is the
    time of the resume."""
    paused_because: str | None = None
    """The operator's note about the pause, or about the resume."""

    @property
    def operator_pause_until(self) -> datetime | None:
        """The end of an operator's pause, which may be over. None in the row of an instance."""
        return None if self.paused_by is None else self.paused_until

    @property
    def is_report(self) -> bool:
        """Whether the row is an instance's own report.

        Other rows come from a supervisor or an operator.
        """
        return self.unresponsive_since is None and self.paused_by is None

    @property
    def next_probe(self) -> datetime | None:
        """When schedulers may send requests to a silent agent again.

        None if the agent is not silent. The pause is a quarter of the time for which the agent had
        been silent at the last finding, within limits (SUP-10). So it grows with the silence.
        """
        if self.unresponsive_since is None:
            return None
        pause = (self.at - self.unresponsive_since) * PROBE_PAUSE_SHARE
        return self.at + min(max(pause, SHORTEST_PROBE_PAUSE), LONGEST_PROBE_PAUSE)

    @property
    def counts_until(self) -> datetime:
        """When the row expires."""
        times = (
            self.at + FRESH,
            self.open_until,
            self.paused_until,
            self.unresponsive_since and self.at + SILENCE,
        )
        return max(time for time in times if time)


def has_reported(health: Iterable[AgentHealth], agent: str, moment: datetime) -> bool:
    """Whether any instance of the agent has reported since this moment."""
    reported = (report.at for report in health if report.agent == agent and report.is_report)
    return any(at >= moment for at in reported)


def has_begun(health: Iterable[AgentHealth], request: str) -> bool:
    """Whether any instance has reported that it began the request with this id."""
    return any(request in report.begun for report in health)


def fault_of(health: Iterable[AgentHealth], request: str) -> AttemptFault | None:
    """Return the fault that was reported for this request, or None.

    The fault of another request says nothing about this one, even if it belongs to the same order
    (SUP-3).
    """
    faults = (fault for row in health for fault in row.faults if request in fault.requests)
    # If several instances had the request, a gateway's fault wins, so that an operator decides.
    return max(faults, key=lambda fault: fault.by_gateway, default=None)


def is_overloaded(
    health: Iterable[AgentHealth], agent: str, request: str, within: timedelta
) -> bool:
    """Whether the agent was overloaded when the attempt of this request timed out (AGT-8).

    An agent is overloaded if its calls timed out for `OVERLOAD_ORDERS` different orders, including
    this one, at most `within` before or after this time-out.
    """
    rows = [row for row in health if row.agent == agent]
    fault = fault_of(rows, request)
    own = dict(_timeouts((fault,))).get(request) if fault else None
    if own is None:
        return False
    times = _timeouts(fault for row in rows for fault in row.faults)
    orders = {order_id_in(name) for name, at in times if abs(at - own) <= within}
    return len(orders) >= OVERLOAD_ORDERS


def _timeouts(faults: Iterable[AttemptFault]) -> Iterator[tuple[str, datetime]]:
    """Yield each request whose attempt timed out, with the time."""
    for fault in faults:
        if fault.timed_out_at:
            yield from zip(fault.requests, fault.timed_out_at, strict=False)


def silence_of(health: Sequence[AgentHealth], agent: str, now: datetime) -> AgentHealth | None:
    """Return the latest finding that the agent is silent. None if it is not silent."""
    current = (row for row in health if row.agent == agent and row.counts_until > now)
    findings = (row for row in current if row.unresponsive_since and not is_overruled(row, health))
    return max(findings, key=lambda row: row.at, default=None)


def unresponsive_since(health: Sequence[AgentHealth], agent: str, now: datetime) -> datetime | None:
    """Return when the agent stopped answering requests. None if it is not silent."""
    silence = silence_of(health, agent, now)
    return silence.unresponsive_since if silence else None


def is_overruled(silence: AgentHealth, health: Iterable[AgentHealth]) -> bool:
    """Whether the agent has reported, or an operator has paused it, since its silence began."""
    since = silence.unresponsive_since
    if since is None:
        return False
    rows = [row for row in health if row.agent == silence.agent]
    ends = (row.operator_pause_until for row in rows)
    # A paused agent gets no requests, so it is not silent (OPR-9).
    was_paused = any(end is not None and end > since for end in ends)
    return was_paused or has_reported(rows, silence.agent, since)


def closed_until(health: Iterable[AgentHealth], agent: str, now: datetime) -> datetime | None:
    """Return the time until which schedulers must not send requests to the agent. None if they may.

    A pause that the service or an operator requested applies to all instances. An open circuit
    applies to one instance, so the agent is closed only if the circuits of all current instances
    are open.
    """
    rows = [row for row in health if row.agent == agent]
    pauses = [row.paused_until for row in rows if row.paused_until and row.paused_until > now]
    if pauses:
        return max(pauses)
    current = [row for row in rows if row.is_report and row.counts_until > now]
    closed = [row.open_until for row in current if row.open_until and row.open_until > now]
    return min(closed) if closed and len(closed) == len(current) else None


def requests_from(health: Sequence[AgentHealth], agent: str, now: datetime) -> datetime | None:
    """Return when schedulers may send requests to the agent again. None if they may send some now.

    They send none while the agent makes no calls, nor during the pauses of a silent agent (SUP-10).
    """
    if closed := closed_until(health, agent, now):
        return closed
    silence = silence_of(health, agent, now)
    probe = silence.next_probe if silence else None
    return probe if probe and probe > now else None


def pause_of(health: Iterable[AgentHealth], agent: str, now: datetime) -> AgentHealth | None:
    """Return the row by which an operator pauses the agent now, or None."""
    of_agent = (row for row in health if row.agent == agent)
    return next(
        (row for row in of_agent if row.operator_pause_until and row.operator_pause_until > now),
        None,
    )


FORM = RowMapper(AgentHealth, texts=("begun", "faults"))

PARTITION = "health"


class AgentHealthLog:
    """The reports of the agents. Every method raises `UnavailableError`."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def publish(self, health: AgentHealth, before: AgentHealth | None = None) -> None:
        """Write the instance's report and remove its previous one."""
        old = _key(before) if before else None
        operations: list[Operation] = [Put(_key(health), FORM.columns(health))]
        if old and old != _key(health):
            operations.append(Delete(old))
        await self._table.submit_separately(PARTITION, operations)

    async def pause(self, pause: AgentHealth) -> None:
        """Replace all rows by which operators paused the agent by this one."""
        found = await self._table.rows(PARTITION, sortable(pause.at), LAST)
        key, ending = _key(pause), f"|{pause.agent}|{OPERATOR}"
        former = [row.key for row in found if row.key.endswith(ending) and row.key != key]
        operations: list[Operation] = [Put(key, FORM.columns(pause)), *map(Delete, former)]
        await self._table.submit_separately(PARTITION, operations)

    async def remove(self, health: AgentHealth) -> None:
        await self._table.submit_separately(PARTITION, [Delete(_key(health))])

    async def since(self, moment: datetime) -> list[AgentHealth]:
        """Return the latest row of each instance, of those that expire at this time or later."""
        found = await self._table.rows(PARTITION, sortable(moment), LAST)
        rows = read_rows(found, lambda row: FORM.record(columns_of(row)))
        newest = {(row.agent, row.instance): row for row in sorted(rows, key=lambda row: row.at)}
        return list(newest.values())

    async def remove_before(self, moment: datetime) -> None:
        """Remove the rows that expired before this time."""
        found = await self._table.rows(PARTITION, "", sortable(moment))
        await self._table.submit_separately(PARTITION, [Delete(row.key) for row in found])


def _key(health: AgentHealth) -> str:
    return f"{sortable(health.counts_until)}|{health.agent}|{key_part(health.instance)}"
