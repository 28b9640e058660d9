"""How the system is doing, at a glance: what is open, what is not sent yet, what nobody could read, how agents are."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import Field

from core import agenda, outbox
from core.agenda import Kind
from core.orders import ProcessState
from core.ports import Clock
from operators.owed import MAX_COUNTED, Orders, Owed
from operators.poison import PoisonService
from operators.views import View
from stores.agent_health import AgentHealthLog
from stores.orders import OrderStore
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
    agents: list[AgentView]


@dataclass(frozen=True, kw_only=True)
class OverviewService:
    """Asks everything at once."""

    store: OrderStore
    owed: Owed
    agent_health: AgentHealthLog
    sweeps: SweepLog
    poison: PoisonService
    clock: Clock

    _last: list[Overview] = field(default_factory=list)

    async def look(self) -> Overview:
        """Show how the system is doing, or was two seconds ago; raises `UnavailableError`.

        Forty queries a look: several open pages should not cost as many times that.
        """
        if not self._last or self.clock() - self._last[0].at >= KEPT:
            self._last[:] = [await self._look()]
        return self._last[0]

    async def _look(self) -> Overview:
        at = self.clock()
        pending, running, failed = [
            await self.owed.orders(kind, at - KEPT) for kind in (Kind.PENDING, Kind.RUNNING, Kind.ERROR)
        ]
        events, notices = await self._unsent()
        said = await self.agent_health.since(self.clock() - FRESH)
        return Overview(
            at=at,
            open_orders={
                ProcessState.PENDING: _count(pending),
                # of a pending order, other steps may still run
                ProcessState.PROCESSING: Count(count=len(running.ids - pending.ids), at_least=running.more),
                ProcessState.ERROR: _count(failed),
            },
            unconfirmed_events=events,
            unsent_notices=notices,
            last_sweep=await self.sweeps.last(),
            poison=await self.poison.count(),
            agents=[AgentView.model_validate(each) for each in said],
        )

    async def _unsent(self) -> Iterator[Count]:
        """Count the events, and the notices, that are not sent."""
        pages = await self.store.agendas(*agenda.all_of(Kind.OUTBOX), MAX_COUNTED)
        more = any(len(page) == MAX_COUNTED for page in pages)
        are_notices = [outbox.is_notice(row) for page in pages for row in page]
        return (Count(count=are_notices.count(wanted), at_least=more) for wanted in (False, True))


def _count(orders: Orders) -> Count:
    return Count(count=len(orders.ids), at_least=orders.more)
