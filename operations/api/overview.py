"""The overview of the system: open orders, unsent rows, poison messages, agents, the last hour."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from engine.decisions.lists import LISTS
from engine.domain.errors import UnavailableError
from engine.domain.work_index import IndexRow, WorkItemKind
from engine.http.models import View
from engine.ports import Clock, TextQueue
from engine.storage import outbox
from engine.storage.agent_health import AgentHealth, AgentHealthLog, pause_of
from engine.storage.figures import Figures, FiguresLog, minute_of
from engine.storage.sweeps import Sweep, SweepLog
from operations.api.agents import PausedAgent, paused_agent
from operations.api.outbox import OutboxReader, WorkIndexReading
from operations.api.poison import PoisonService
from operations.api.requests import SHARED, FollowRequest, Reading
from operations.api.views import Count, ListedOrder, listed

SHARED_FOR = timedelta(seconds=2)
"""How long a reading of the work index is reused, so that several open pages share its cost."""

RECENT = timedelta(minutes=1)
"""How long an agent instance is shown after its last report."""

SHOWN = timedelta(hours=1)
"""The period that the figures cover."""

ERROR = next(name for name, kind in LISTS.items() if kind is WorkItemKind.ERROR)
MAX_CAUSES = 200
"""The most causes that are listed. A service may give each order a different text."""

MAX_STEPS = 20
"""The most steps in the figures: those that completed most often."""


class WaitingOrders(View):
    """The orders that wait for an operator for one cause, after one step at one agent."""

    model_config = ConfigDict(title="Waiting")
    step: str | None
    agent: str | None
    """The agent of that step, which may be the cause."""
    cause: str | None
    """The name of their group of causes; lists and bulk actions take it as a filter."""
    reason: str | None
    """The reason of most of these orders."""
    count: int
    first: datetime | None
    """The time since which the first of these orders has waited."""


class Overview(View):
    """The state of the system."""

    model_config = ConfigDict(alias_generator=to_camel)

    at: datetime
    """When the data was read."""
    open_orders: dict[str, Count]
    """The number of open orders in each list."""
    waiting_for_operator: list[WaitingOrders]
    """The causes for which orders wait for an operator, those with the most orders first, counted
    as in `open_orders`."""
    more_causes: bool
    """Whether there are more causes, with fewer orders each, that are not listed."""
    unconfirmed_events: Count
    """Alerts that are not sent yet."""
    unsent_notices: Count
    """Status notifications for the senders of orders that are not sent yet."""
    last_sweep: Sweep | None
    """The last sweep. Its supervisor is the leader."""
    poison: dict[str, Count]
    """The poison messages from each queue that has any."""
    waiting: dict[str, int | None]
    """Approximate number of messages in each Storage Queue; null if the queue cannot be reached."""
    agents: list[AgentHealth]
    """The last health report of each instance."""
    agent_names: list[str]
    """All agents, including agents of which no instance has reported recently."""
    paused_agents: list[PausedAgent]
    """The agents that operators have paused."""


class Followed(View):
    """The states of the orders that an operator follows."""

    at: datetime
    """When the data was read."""
    failed: list[str]
    """The orders that wait for an operator."""
    under_way: list[str]
    over: list[str]
    """The orders that have ended."""
    may_be_open: bool
    """Whether some of these orders may still be open, because not all open orders were read."""


class LastHour(View):
    """The last hour, up to the end of the last full minute."""

    since: datetime
    until: datetime
    minutes: list[Figures]
    """The minutes in which an order or a step ended, in chronological order."""
    more_steps: bool
    """Whether the minutes leave out steps that completed less often."""


@dataclass(frozen=True, kw_only=True)
class OverviewService:
    """Reads the state of the whole system."""

    outbox_reader: OutboxReader
    agents: Sequence[str]
    """The names of this app's agents."""
    agent_health: AgentHealthLog
    sweeps: SweepLog
    poison: PoisonService
    figures: FiguresLog
    queues: Mapping[str, TextQueue]
    clock: Clock

    async def look(self, reading: Reading = SHARED) -> Overview:
        """Show the numbers of orders, messages and agents.

        Raises `UnavailableError`, alone or in a group.
        """
        pending = await (
            self.outbox_reader.read() if reading.fresh else self.outbox_reader.recent(SHARED_FOR)
        )
        now = self.clock()
        health = await self.agent_health.since(now - RECENT)
        pauses = (pause_of(health, name, now) for name in self.agents)
        causes = waiting_causes(pending.rows[WorkItemKind.ERROR])
        return Overview(
            at=pending.at,
            waiting_for_operator=causes[:MAX_CAUSES],
            more_causes=len(causes) > MAX_CAUSES,
            open_orders={name: _listed(pending, name) for name in LISTS},
            unconfirmed_events=_count(
                pending, WorkItemKind.OUTBOX, lambda row: not outbox.is_notice(row)
            ),
            unsent_notices=_count(pending, WorkItemKind.OUTBOX, outbox.is_notice),
            last_sweep=await self.sweeps.last(),
            poison=await self.poison.count(),
            waiting={name: await _waiting(queue) for name, queue in self.queues.items()},
            agents=[report for report in health if report.paused_by is None],
            agent_names=list(self.agents),
            paused_agents=[paused_agent(pause) for pause in pauses if pause],
        )

    async def follow(self, request: FollowRequest) -> Followed:
        """Show which of the given orders have failed, are in progress or are over.

        The call is meant for orders that were acted on. They are read after the call arrived, so an
        order in `Error` has failed since the action.

        Raises `UnavailableError`, alone or in a group.
        """
        pending = await self.outbox_reader.read()
        found: dict[str, list[str]] = {"failed": [], "under_way": [], "over": []}
        for order_id in dict.fromkeys(request.orders):
            found[_stands(pending, order_id)].append(order_id)
        more = any(pending.more(kind) for kind in LISTS.values())
        return Followed(at=pending.at, may_be_open=more, **found)

    async def last_hour(self) -> LastHour:
        """Show how many orders ended in each minute of the last hour, and how long steps took.

        Raises `UnavailableError`.
        """
        until = minute_of(self.clock())
        minutes: dict[datetime, Figures] = {}
        for minute in await self.figures.between(until - SHOWN, until):
            minutes[minute.at] = minutes.get(minute.at, Figures(at=minute.at)).plus(minute)
        in_order = [minutes[at] for at in sorted(minutes)]
        steps = {name for minute in in_order for name in minute.steps}
        return LastHour(
            since=until - SHOWN,
            until=until,
            minutes=_most_frequent_steps(in_order),
            more_steps=len(steps) > MAX_STEPS,
        )


def waiting_causes(rows: Sequence[IndexRow]) -> list[WaitingOrders]:
    """Return why the orders of these rows wait. The cause of the most orders comes first."""
    groups: dict[tuple[str | None, ...], list[ListedOrder]] = {}
    for order in (listed(row, ERROR) for row in rows):
        step, agent = _failed_at(order)
        own = None if order.cause else order.reason  # of a row that cannot be read
        groups.setdefault((step, agent, order.cause, own), []).append(order)
    found = [_waiting_for(orders) for orders in groups.values()]
    return sorted(found, key=lambda cause: cause.count, reverse=True)


def _failed_at(order: ListedOrder) -> tuple[str | None, str | None]:
    """Return the first step that failed, and its agent."""
    return next(iter(order.failed_steps), None), next(iter(order.failed_agents), None)


def _waiting_for(orders: list[ListedOrder]) -> WaitingOrders:
    step, agent = _failed_at(orders[0])
    times = [order.updated_at for order in orders if order.updated_at]
    return WaitingOrders(
        step=step,
        agent=agent,
        cause=orders[0].cause,
        reason=Counter(order.reason for order in orders).most_common(1)[0][0],
        count=len(orders),
        first=min(times, default=None),
    )


def _listed(pending: WorkIndexReading, name: str) -> Count:
    """Count the orders of a list.

    An order with an unreadable row counts in the list of this row.
    """
    kind = LISTS[name]
    rows = (row for row in pending.rows[kind] if row.fault or row.data.get("List") == name)
    return Count(count=len({row.order_id for row in rows}), at_least=pending.more(kind))


def _count(
    pending: WorkIndexReading,
    kind: WorkItemKind,
    counted: Callable[[IndexRow], bool] = lambda _: True,
) -> Count:
    return Count(count=sum(map(counted, pending.rows[kind])), at_least=pending.more(kind))


async def _waiting(queue: TextQueue) -> int | None:
    try:
        return await queue.waiting()
    except UnavailableError:
        return None


def _stands(pending: WorkIndexReading, order_id: str) -> str:
    """Return whether an order has failed, continues or is over, by its work items."""
    if order_id in pending.orders[WorkItemKind.ERROR]:
        return "failed"
    kinds = {*LISTS.values()} - {WorkItemKind.ERROR}
    return "under_way" if any(order_id in pending.orders[kind] for kind in kinds) else "over"


def _most_frequent_steps(minutes: list[Figures]) -> list[Figures]:
    """Return the figures of at most `MAX_STEPS` steps: those that completed most often."""
    completed = Counter[str]()
    for minute in minutes:
        completed.update({name: took.count for name, took in minute.steps.items()})
    shown = {name for name, _ in completed.most_common(MAX_STEPS)}

    def with_shown_steps(figures: Figures) -> Figures:
        return replace(
            figures, steps={name: figures.steps[name] for name in figures.steps if name in shown}
        )

    return [with_shown_steps(minute) for minute in minutes]
