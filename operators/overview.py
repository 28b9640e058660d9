"""How the system is doing, at a glance: what is open, not sent or unreadable, how agents are; and the last hour."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from core.agenda import LISTS, AgendaRow, Kind
from core.errors import UnavailableError
from core.life import ProcessState
from core.ports import Clock, TextQueue
from entrypoints.models import View
from operators.owed import Look, Owed
from operators.poison import PoisonService
from stores import outbox
from stores.agent_health import AgentHealth, AgentHealthLog
from stores.figures import Figures, FiguresLog, minute_of
from stores.sweeps import Sweep, SweepLog

KEPT = timedelta(seconds=2)
"""How long a reading of what is owed is good for: several open pages should not cost as many times that."""

FRESH = timedelta(minutes=1)
"""How long an agent that said something of itself is shown."""

SHOWN = timedelta(hours=1)
"""Of the figures."""

MAX_STEPS = 20
"""Of more steps, those are shown that were completed most often."""


class Count(View):
    """How many there are."""

    count: int
    at_least: bool
    """Whether there are more, which were not counted."""


class Overview(View):
    """The answer."""

    at: datetime
    """When it was so."""
    open_orders: dict[str, Count]
    """By list."""
    unconfirmed_events: Count
    """Events for operators that are not sent yet."""
    unsent_notices: Count
    """Notices for the senders of orders that are not sent yet."""
    last_sweep: Sweep | None
    """And who swept: the leader."""
    poison: dict[str, int]
    """How many messages are kept, up to 100 of each queue that they came from."""
    waiting: dict[str, int | None]
    """About how many messages wait in each Storage Queue; null if it is away."""
    agents: list[AgentHealth]
    """What each instance said of itself last."""


class LastHour(View):
    """The last hour, up to the end of the last full minute."""

    since: datetime
    until: datetime
    minutes: list[Figures]
    """Those in which anything ended, in order."""


@dataclass(frozen=True, kw_only=True)
class OverviewService:
    """Asks everything at once."""

    owed: Owed
    agent_health: AgentHealthLog
    sweeps: SweepLog
    poison: PoisonService
    figures: FiguresLog
    queues: Mapping[str, TextQueue]
    clock: Clock

    async def look(self) -> Overview:
        """Show how the system is doing; raises `UnavailableError`, alone or in a group."""
        owed = await self.owed.recent(KEPT)
        waiting, running = owed.orders[Kind.PENDING], owed.orders[Kind.RUNNING]
        pending = {order_id for order_id, row in waiting.items() if not _is_processing(row)}
        processing = running.keys() - pending  # of a pending order, other steps may still run
        known = {
            "Pending": Count(count=len(pending), at_least=owed.more(Kind.PENDING)),
            "Processing": Count(count=len(processing), at_least=owed.more(Kind.RUNNING)),
        }
        return Overview(
            at=owed.at,
            open_orders={name: _count(owed, kind) for name, kind in LISTS.items()} | known,
            unconfirmed_events=_count(owed, Kind.OUTBOX, lambda row: not outbox.is_notice(row)),
            unsent_notices=_count(owed, Kind.OUTBOX, outbox.is_notice),
            last_sweep=await self.sweeps.last(),
            poison=await self.poison.count(),
            waiting={name: await _waiting(queue) for name, queue in self.queues.items()},
            agents=await self.agent_health.since(self.clock() - FRESH),
        )

    async def last_hour(self) -> LastHour:
        """Show what ended in each minute of the last hour, and how long steps took; raises `UnavailableError`."""
        until = minute_of(self.clock())
        minutes: dict[datetime, Figures] = {}
        for each in await self.figures.between(until - SHOWN, until):
            minutes[each.at] = minutes.get(each.at, Figures(at=each.at)).plus(each)
        in_order = _of_few_steps([minutes[at] for at in sorted(minutes)])
        return LastHour(since=until - SHOWN, until=until, minutes=in_order)


def _is_processing(row: AgendaRow) -> bool:
    """Whether the order has steps that run beside those that wait."""
    return row.data.get("ProcessState") == ProcessState.PROCESSING


def _count(owed: Look, kind: Kind, counted: Callable[[AgendaRow], bool] = lambda _: True) -> Count:
    return Count(count=sum(map(counted, owed.rows[kind])), at_least=owed.more(kind))


async def _waiting(queue: TextQueue) -> int | None:
    try:
        return await queue.waiting()
    except UnavailableError:
        return None


def _of_few_steps(minutes: list[Figures]) -> list[Figures]:
    completed = Counter[str]()
    for each in minutes:
        completed.update({name: took.count for name, took in each.steps.items()})
    few = {name for name, _ in completed.most_common(MAX_STEPS)}
    return [
        replace(each, steps={name: each.steps[name] for name in each.steps if name in few})
        for each in minutes
    ]
