"""How the system is doing, at a glance: what is open, what is not sent yet, what nobody could read, how agents are."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import Field

from core.agenda import AgendaRow, Kind
from core.errors import UnavailableError
from core.orders import ProcessState
from core.ports import Clock, TextQueue
from operators.owed import Look, Owed
from operators.poison import PoisonService
from operators.views import View
from stores import outbox
from stores.agent_health import AgentHealthLog
from stores.sweeps import Sweep, SweepLog

KEPT = timedelta(seconds=2)
"""How long a process says the same."""

FRESH = timedelta(minutes=1)
"""How long an agent that said something of itself is shown."""


class Count(View):
    """How many there are."""

    count: int
    at_least: bool
    """Whether there are more, which were not counted."""


class AgentView(View):
    """What an instance of an agent said of itself last."""

    agent: str
    instance: str
    at: datetime
    waited: float
    running: int
    open_until: Annotated[datetime | None, Field(exclude_if=lambda until: until is None)] = None


class Overview(View):
    """The answer."""

    at: datetime
    """When it was so."""
    open_orders: dict[ProcessState, Count]
    unconfirmed_events: Count
    """Events for operators that are not sent yet."""
    unsent_notices: Count
    """Notices for the senders of orders that are not sent yet."""
    last_sweep: Sweep | None
    """And who swept: the leader."""
    poison: dict[str, int]
    """How many messages are kept, up to 100 of each queue that they came from."""
    waiting: dict[str, int | None]
    """About how many messages wait in each Storage Queue; null if it is away. How long requests wait, agents say."""
    agents: list[AgentView]


@dataclass(frozen=True, kw_only=True)
class OverviewService:
    """Asks everything at once."""

    owed: Owed
    agent_health: AgentHealthLog
    sweeps: SweepLog
    poison: PoisonService
    queues: Mapping[str, TextQueue]
    clock: Clock

    _last: list[Overview] = field(default_factory=list)

    async def look(self) -> Overview:
        """Show how the system is doing, or was two seconds ago; raises `UnavailableError`, alone or in a group.

        Some twenty queries a look: several open pages should not cost as many times that.
        """
        if not self._last or not timedelta(0) <= self.clock() - self._last[0].at < KEPT:
            self._last[:] = [await self._look()]
        return self._last[0]

    async def _look(self) -> Overview:
        owed = await self.owed.recent(KEPT)
        running, pending = owed.orders[Kind.RUNNING].keys(), owed.orders[Kind.PENDING].keys()
        processing = running - pending  # of a pending order, other steps may still run
        said = await self.agent_health.since(self.clock() - FRESH)
        return Overview(
            at=owed.at,
            open_orders={
                ProcessState.PENDING: _count(owed, Kind.PENDING),
                ProcessState.PROCESSING: Count(count=len(processing), at_least=owed.more(Kind.RUNNING)),
                ProcessState.ERROR: _count(owed, Kind.ERROR),
            },
            unconfirmed_events=_count(owed, Kind.OUTBOX, lambda row: not outbox.is_notice(row)),
            unsent_notices=_count(owed, Kind.OUTBOX, outbox.is_notice),
            last_sweep=await self.sweeps.last(),
            poison=await self.poison.count(),
            waiting={name: await _waiting(queue) for name, queue in self.queues.items()},
            agents=[AgentView.model_validate(each) for each in said],
        )


def _count(owed: Look, kind: Kind, counted: Callable[[AgendaRow], bool] = lambda _: True) -> Count:
    return Count(count=sum(map(counted, owed.rows[kind])), at_least=owed.more(kind))


async def _waiting(queue: TextQueue) -> int | None:
    try:
        return await queue.waiting()
    except UnavailableError:
        return None
