"""What the agents tell of themselves, in table `agents`: one row for each instance, sorted by how long it counts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import AwareDatetime, FiniteFloat

from core.keys import LAST, key_part, sortable
from stores.tables import Delete, Form, Operation, Put, Table, columns_of, read_each

FRESH = timedelta(seconds=15)
"""How long what an instance says of its work is believed: it says something when a request begins, and calls take
time."""

SILENCE = timedelta(minutes=10)
"""How long it is believed that an agent is silent which nobody has asked anything since."""

KEPT = timedelta(hours=1)
"""How long a row is kept that does not count any more: longer than any step takes, since whether the agent was heard
of since a step began is asked when the step's time is up."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentHealth:
    """How one instance of an agent is doing (AGT-10)."""

    agent: str
    instance: str
    at: AwareDatetime
    running: int = 0
    """Calls in progress."""
    rate: FiniteFloat = 0.0
    """Requests that it begins for each second, as an average over some seconds."""
    begun: tuple[str, ...] = ()
    """The ids of requests that it has begun and that may come to nothing."""
    open_until: AwareDatetime | None = None
    """While the instance's circuit is open: until when it makes no call."""
    asked_until: AwareDatetime | None = None
    """Until when the service itself asked to be left alone, which concerns all instances."""
    fault: str | None = None
    """What the last call said that came to nothing for as long as its attempt had time."""
    fault_at: AwareDatetime | None = None
    at_door: bool = False
    """Whether that fault is no word of the service: a gateway or a proxy before it turned the call away."""
    unheard_since: AwareDatetime | None = None
    """Said by a supervisor, not by an instance: since when the agent has been asked, and has begun nothing."""

    @property
    def counts_until(self) -> datetime:
        """Until when the row says something of the present."""
        times = (
            self.at + FRESH,
            self.open_until,
            self.asked_until,
            self.unheard_since and self.at + SILENCE,
        )
        return max(time for time in times if time)


def has_spoken(health: Iterable[AgentHealth], agent: str, moment: datetime) -> bool:
    """Whether any instance of the agent has said anything of itself since then."""
    said = (each.at for each in health if each.agent == agent and each.unheard_since is None)
    return any(at >= moment for at in said)


def has_begun(health: Iterable[AgentHealth], request: str) -> bool:
    """Whether any instance says that it has begun the request of this id."""
    return any(request in each.begun for each in health)


def fault_since(
    health: Iterable[AgentHealth], agent: str, moment: datetime | None
) -> AgentHealth | None:
    """Return the row of the instance that told the agent's last fault since then; None if none was told."""
    told = [
        each
        for each in health
        if each.agent == agent and each.fault_at and moment and each.fault_at >= moment
    ]
    return max(told, key=lambda each: each.fault_at or each.at, default=None)


def silent_since(health: Sequence[AgentHealth], agent: str, now: datetime) -> datetime | None:
    """Return since when the agent has been asked without a word from it; None if it has spoken, or nobody asked."""
    told = (each for each in health if each.agent == agent and each.counts_until > now)
    asked = [each.unheard_since for each in told if each.unheard_since]
    since = min(asked, default=None)
    return since if since and not has_spoken(health, agent, since) else None


def closed_until(health: Iterable[AgentHealth], agent: str, now: datetime) -> datetime | None:
    """Return until when nobody sends the agent anything; None if it may be asked.

    What its service asks for concerns everybody. That a circuit is open concerns the instance that says so: the agent
    is closed only if those of all instances that lately said something are.
    """
    said = [each for each in health if each.agent == agent and each.unheard_since is None]
    asked = [each.asked_until for each in said if each.asked_until and each.asked_until > now]
    if asked:
        return max(asked)
    lately = [each for each in said if each.counts_until > now]
    closed = [each.open_until for each in lately if each.open_until and each.open_until > now]
    return min(closed) if closed and len(closed) == len(lately) else None


FORM = Form(AgentHealth, texts=("begun",))

PARTITION = "health"


class AgentHealthLog:
    """What the agents tell of themselves. Every method raises `UnavailableError` when the table cannot be reached."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def publish(self, health: AgentHealth, before: AgentHealth | None = None) -> None:
        """Say this in the place of what the instance said before."""
        old = _key(before) if before else None
        operations: list[Operation] = [Put(_key(health), FORM.columns(health))]
        if old and old != _key(health):
            operations.append(Delete(old))
        await self._table.submit_each(PARTITION, operations)

    async def remove(self, health: AgentHealth) -> None:
        """Remove what holds no more."""
        await self._table.submit_each(PARTITION, [Delete(_key(health))])

    async def since(self, moment: datetime) -> list[AgentHealth]:
        """Return what says something of the time since then: the newest row of each instance."""
        found = await self._table.rows(PARTITION, sortable(moment), LAST)
        rows = read_each(found, lambda row: FORM.record(columns_of(row)))
        newest = {(row.agent, row.instance): row for row in sorted(rows, key=lambda row: row.at)}
        return list(newest.values())

    async def remove_before(self, moment: datetime) -> None:
        """Remove what says nothing of the time since then."""
        found = await self._table.rows(PARTITION, "", sortable(moment))
        await self._table.submit_each(PARTITION, [Delete(row.key) for row in found])


def _key(health: AgentHealth) -> str:
    return f"{sortable(health.counts_until)}|{health.agent}|{key_part(health.instance)}"
