"""Notices on a timer of its own when nobody claims orders, recovers them, or sweeps (SUP-7)."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from core import agenda, alerts, keys
from core.agenda import AgendaRow
from core.changes import Event
from core.gathering import results_of, settle_all
from core.ports import Clock
from stores.agent_health import KEPT, AgentHealthLog, silent_since
from stores.claim_lanes import PAGE, BucketLook
from stores.orders import OrderStore
from stores.sweeps import SweepLog

log = logging.getLogger(__name__)

LONGEST_HELD = timedelta(hours=24)
"""An order that is held for longer was perhaps forgotten."""

LONGEST_START = timedelta(minutes=1)
"""After a pause of the whole system somebody sweeps within this time, also if a dead host's timers are still locked."""

Told = tuple[str, Event]
"""An event, and the bucket in whose outbox it is put."""


@dataclass(kw_only=True)
class Watch:
    """Looks at the orders that are due to be claimed, and at the last sweep."""

    store: OrderStore
    sweeps: SweepLog
    agent_health: AgentHealthLog
    offers: Mapping[str, Sequence[str]]
    """The agents that offer each capability."""
    clock: Clock
    longest_pending: timedelta
    """An order that may be claimed and is not, or that is overdue, for longer than this raises an alert."""
    longest_without_sweep: timedelta
    _told: set[str] = field(default_factory=set)
    """What stands still and was announced by this instance: the outbox forgets events once they are sent."""

    async def look(self) -> timedelta:
        """Return, and log, how long the order has been waiting that could have been claimed first.

        If a bucket cannot be read, `UnavailableError` is raised in the end, once it is told what is seen of the others.
        """
        now = self.clock()
        waiting: list[AgendaRow] = []
        looks = await settle_all(
            self._look_into(bucket, now, waiting) for bucket in self.store.buckets
        )
        unserved = set[str]()
        others = [self._sweeps(now), self._silent_agents(now, unserved)]
        for bucket in self.store.buckets:
            others += [self._not_recovered(bucket, now), self._held_for_long(bucket, now)]
        standing = await settle_all(others)
        seen = [told for each in standing if not isinstance(each, Exception) for told in each]
        late = [row for row in waiting if now - agenda.since(row) > self.longest_pending]
        await self._tell([*(_of_order(row) for row in late if _needs(row) not in unserved), *seen])
        results_of([*looks, *standing])
        longest = max((now - agenda.since(row) for row in waiting), default=timedelta())
        log.info("orders.waiting", extra={"longest_seconds": longest.total_seconds()})
        return longest

    async def _look_into(self, bucket: str, now: datetime, waiting: list[AgendaRow]) -> None:
        """Add the first orders of each lane that are due, on past those that are late and were announced before."""
        late = now - self.longest_pending

        def unheard_of(row: AgendaRow) -> AgendaRow | None:
            due = _due(row)
            if due is None:
                return None
            if due <= now:
                waiting.append(row)
            return row if due < late and _of_order(row)[1].event_id not in self._told else None

        await BucketLook(store=self.store, bucket=bucket, due=late, choose=unheard_of).at_pending()

    async def _silent_agents(self, now: datetime, unserved: set[str]) -> list[Told]:
        """Return the agents that were asked, and have not been heard of since for too long.

        And add to `unserved` what only silent agents offer: orders that wait for it are told once, for the agent.
        """
        said = await self.agent_health.since(now - KEPT)
        agents = dict.fromkeys(agent for offered in self.offers.values() for agent in offered)
        silent = {agent: since for agent in agents if (since := silent_since(said, agent, now))}
        late = {
            agent: since for agent, since in silent.items() if now - since > self.longest_pending
        }
        unserved.update(
            needs for needs, offered in self.offers.items() if silent.keys() >= set(offered)
        )
        return [self._of_agent(agent, since) for agent, since in late.items()]

    def _of_agent(self, agent: str, since: datetime) -> Told:
        event = alerts.stalled(
            f"{alerts.ABOUT_AGENT}{agent}", since, f"nobody takes the requests to {agent}"
        )
        return keys.spread_over(self.store.buckets, event.event_id), event

    async def _sweeps(self, now: datetime) -> list[Told]:
        last = await self.sweeps.last()
        since = last.at if last else await self.sweeps.awaited_since(now)
        if now - since <= self.longest_without_sweep:
            return []
        if last and now - await self.sweeps.missed_since(last, now) < min(
            self.longest_without_sweep, LONGEST_START
        ):
            return []
        return [
            (
                self.store.buckets[0],
                alerts.stalled(alerts.SUPERVISOR, since, "no supervisor sweeps"),
            )
        ]

    async def _not_recovered(self, bucket: str, now: datetime) -> list[Told]:
        """Return the orders that are overdue for too long: the supervisor sees them at each sweep, and cannot help."""
        due = agenda.overdue(now - self.longest_pending)
        return await self._all(bucket, *due, "it is overdue, and nobody could recover it")

    async def _held_for_long(self, bucket: str, now: datetime) -> list[Told]:
        """Return the orders that are held for so long that they may have been forgotten (OPR-7)."""
        return await self._all(
            bucket, *agenda.held_before(now - LONGEST_HELD), "it is held for long: release it"
        )

    async def _all(self, bucket: str, start: str, end: str, reason: str) -> list[Told]:
        """Return what is told of the orders of a list; those that were announced before hide nobody behind them."""
        found: list[Told] = []
        unheard_of = 0
        while unheard_of < PAGE:
            page = await self.store.agenda(bucket, start, end, PAGE)
            told = [each for row in page if (each := _of_listed(row, reason))]
            unheard_of += sum(event.event_id not in self._told for _, event in told)
            found += told
            if len(page) < PAGE:
                break
            start = f"{page[-1].key} "
        return found

    async def _tell(self, standing: Sequence[Told]) -> None:
        """Announce what was not announced before, and forget what goes on again."""
        self._told &= {event.event_id for _, event in standing}
        for bucket, event in standing:
            if event.event_id not in self._told:
                why = {"why": event.data["reason"], "since": event.data["since"]}
                log.error("watch.stalled", extra={"what": event.subject, **why})
                await self.store.announce(bucket, event)
                self._told.add(event.event_id)


def _due(row: AgendaRow) -> datetime | None:
    """Return since when something is owed; None if the row does not say that, or to whom: others log the latter."""
    try:
        due = agenda.since(row)
    except ValueError:
        log.exception("watch.row_passed_over", extra={"row": row.key})
        return None
    return due if row.order_id else None


def _needs(row: AgendaRow) -> str:
    """Return what the pending order needs; empty if its key does not say."""
    return (row.key.split("|") + [""] * 3)[2]


def _of_order(row: AgendaRow) -> Told:
    event = alerts.stalled(
        f"{keys.ABOUT_ORDER}{row.order_id}", agenda.since(row), "it may be claimed, and is not"
    )
    return keys.bucket_of(row.order_id), event


def _of_listed(row: AgendaRow, reason: str) -> Told | None:
    """Return what is told of an order; None if its row does not say whose it is, or since when."""
    since = _due(row)
    if since is None:
        return None
    return keys.bucket_of(row.order_id), alerts.stalled(
        f"{keys.ABOUT_ORDER}{row.order_id}", since, reason
    )
