"""How the system is doing, at a glance: what is open, what is not sent yet, what nobody could read, how agents are."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Self

from pydantic import Field

from core import agenda, outbox
from core.agenda import AgendaRow, Kind
from core.errors import UnavailableError
from core.gathering import run_all
from core.keys import LAST
from core.orders import ProcessState
from core.ports import Clock, TextQueue
from operators.poison import PoisonService
from operators.views import View
from stores.agent_health import AgentHealthLog
from stores.orders import OrderStore
from stores.sweeps import Sweep, SweepLog

MAX_COUNTED = 1000
"""Of each kind in each bucket: more are not counted, only said to be there."""

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


Owed = tuple[Sequence[AgendaRow], Set[str]]
"""The rows of a bucket, and the kinds of which there are more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rows:
    """The rows of one kind in the agendas of all buckets."""

    rows: Sequence[AgendaRow]
    more: bool

    @classmethod
    def of(cls, kind: Kind, owed: Sequence[Owed]) -> Self:
        return cls(
            rows=[row for rows, _ in owed for row in rows if _kind(row) == kind],
            more=any(kind in more for _, more in owed),
        )

    def orders(self) -> set[str]:
        return {row.order_id for row in self.rows}

    def count(self, counted: Callable[[AgendaRow], bool] = lambda _: True) -> Count:
        return Count(count=sum(map(counted, self.rows)), at_least=self.more)


@dataclass(frozen=True, kw_only=True)
class OverviewService:
    """Asks everything at once."""

    store: OrderStore
    agent_health: AgentHealthLog
    sweeps: SweepLog
    poison: PoisonService
    queues: Mapping[str, TextQueue]
    clock: Clock

    _last: list[Overview] = field(default_factory=list)

    async def look(self) -> Overview:
        """Show how the system is doing, or was two seconds ago; raises `UnavailableError`.

        Some twenty queries a look: several open pages should not cost as many times that.
        """
        if not self._last or self.clock() - self._last[0].at >= KEPT:
            self._last[:] = [await self._look()]
        return self._last[0]

    async def _look(self) -> Overview:
        at = self.clock()
        owed = await run_all(self._owed(bucket) for bucket in self.store.buckets)
        pending, running, unsent = (_Rows.of(kind, owed) for kind in (Kind.PENDING, Kind.RUNNING, Kind.OUTBOX))
        processing = running.orders() - pending.orders()  # of a pending order, other steps may still run
        said = await self.agent_health.since(self.clock() - FRESH)
        return Overview(
            at=at,
            open_orders={
                ProcessState.PENDING: pending.count(),
                ProcessState.PROCESSING: Count(count=len(processing), at_least=running.more),
                ProcessState.ERROR: _Rows.of(Kind.ERROR, owed).count(),
            },
            unconfirmed_events=unsent.count(lambda row: not outbox.is_notice(row)),
            unsent_notices=unsent.count(outbox.is_notice),
            last_sweep=await self.sweeps.last(),
            poison=await self.poison.count(),
            waiting={name: await _waiting(queue) for name, queue in self.queues.items()},
            agents=[AgentView.model_validate(each) for each in said],
        )

    async def _owed(self, bucket: str) -> Owed:
        """Read what is owed in a bucket: mostly one page holds all of it. A kind that a page cuts off is read anew."""
        rows: list[AgendaRow] = []
        more: set[str] = set()
        start, end = agenda.everything()
        while len(page := await self.store.agenda(bucket, start, end, MAX_COUNTED)) == MAX_COUNTED:
            last = _kind(page[-1])
            if _kind(page[0]) == last:
                more.add(last)
                rows += page
                start = f"{last}|{LAST}"
            else:
                rows += (row for row in page if _kind(row) != last)
                start = f"{last}|"
        return [*rows, *page], more


def _kind(row: AgendaRow) -> str:
    return row.key.partition("|")[0]


async def _waiting(queue: TextQueue) -> int | None:
    try:
        return await queue.waiting()
    except UnavailableError:
        return None
