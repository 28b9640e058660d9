"""Alerts on a timer of its own when orders are not claimed or recovered, or no sweep runs.

Implements SUP-7.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain

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
"""Time to the first sweep after a pause of the whole system, even if a dead host's locks remain."""

Announcement = tuple[str, Event]
"""The bucket whose outbox takes an event, and the event."""


@dataclass(kw_only=True)
class Watch:
    """Looks for orders, agents and sweeps that stand still, and announces them."""

    store: OrderStore
    sweeps: SweepLog
    agent_health: AgentHealthLog
    offers: Mapping[str, Sequence[str]]
    """The agents that offer each capability."""
    clock: Clock
    longest_pending: timedelta
    """How long an order may be due for a claim, or overdue, before an alert is raised."""
    longest_without_sweep: timedelta
    _announced: set[str] = field(default_factory=set)
    """Ids of the events that this instance has announced: the outbox forgets events once sent."""

    async def look(self) -> timedelta:
        """Announce new standstill; return, and log, the longest wait of an order for its claim.

        If a bucket cannot be read, `UnavailableError` is raised at the end, after the others were
        announced.
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
        late = [row for row in waiting if now - agenda.since(row) > self.longest_pending]
        found = [_of_order(row) for row in late if _needs(row) not in unserved]
        for each in standing:
            if not isinstance(each, Exception):
                found += each
        await self._announce(found)
        results_of([*looks, *standing])
        longest = max((now - agenda.since(row) for row in waiting), default=timedelta())
        log.info("orders.waiting", extra={"longest_seconds": longest.total_seconds()})
        return longest

    async def _look_into(self, bucket: str, now: datetime, waiting: list[AgendaRow]) -> None:
        """Add the first due orders of each lane to `waiting`.

        Late orders that were announced before do not hide those behind them.
        """
        late = now - self.longest_pending

        def unannounced(row: AgendaRow) -> AgendaRow | None:
            due = _due(row)
            if due is None:
                return None
            if due <= now:
                waiting.append(row)
            is_new = due < late and _of_order(row)[1].event_id not in self._announced
            return row if is_new else None

        look = BucketLook(store=self.store, bucket=bucket, due=late, choose=unannounced)
        await look.at_pending()

    async def _silent_agents(self, now: datetime, unserved: set[str]) -> list[Announcement]:
        """Return the agents that have not reported for too long since they were asked.

        Add to `unserved` the capabilities that only silent agents offer: the orders that wait for
        them are not announced one by one.
        """
        reports = await self.agent_health.since(now - KEPT)
        agents = dict.fromkeys(chain.from_iterable(self.offers.values()))
        since_when = {agent: silent_since(reports, agent, now) for agent in agents}
        silent = {agent: since for agent, since in since_when.items() if since}
        for capability, offering in self.offers.items():
            if silent.keys() >= set(offering):
                unserved.add(capability)
        late = (each for each in silent.items() if now - each[1] > self.longest_pending)
        return [self._of_agent(agent, since) for agent, since in late]

    def _of_agent(self, agent: str, since: datetime) -> Announcement:
        event = alerts.stalled(
            f"{alerts.ABOUT_AGENT}{agent}", since, f"nobody takes the requests to {agent}"
        )
        return keys.spread_over(self.store.buckets, event.event_id), event

    async def _sweeps(self, now: datetime) -> list[Announcement]:
        last = await self.sweeps.last()
        since = last.at if last else await self.sweeps.awaited_since(now)
        if now - since <= self.longest_without_sweep:
            return []
        if last:
            missed = now - await self.sweeps.missed_since(last, now)
            if missed < min(self.longest_without_sweep, LONGEST_START):
                return []
        event = alerts.stalled(alerts.SUPERVISOR, since, "no supervisor sweeps")
        return [(self.store.buckets[0], event)]

    async def _not_recovered(self, bucket: str, now: datetime) -> list[Announcement]:
        """Return the orders that are overdue for too long: no sweep has recovered them."""
        due = agenda.overdue(now - self.longest_pending)
        return await self._all(bucket, *due, "it is overdue, and nobody could recover it")

    async def _held_for_long(self, bucket: str, now: datetime) -> list[Announcement]:
        """Return the orders that are held for so long that they may have been forgotten (OPR-7)."""
        return await self._all(
            bucket, *agenda.held_before(now - LONGEST_HELD), "it is held for long: release it"
        )

    async def _all(self, bucket: str, start: str, end: str, reason: str) -> list[Announcement]:
        """Return the announcements for the orders of a list, up to about a page of new ones.

        Orders that were announced before do not hide those behind them.
        """
        found: list[Announcement] = []
        unannounced = 0
        while unannounced < PAGE:
            page = await self.store.agenda(bucket, start, end, PAGE)
            readable = list(filter(None, (_of_listed(row, reason) for row in page)))
            unannounced += sum(event.event_id not in self._announced for _, event in readable)
            found += readable
            if len(page) < PAGE:
                break
            start = f"{page[-1].key} "
        return found

    async def _announce(self, standing: Sequence[Announcement]) -> None:
        """Announce the new ones among these, and forget former ones that are not among them."""
        self._announced &= {event.event_id for _, event in standing}
        for bucket, event in standing:
            if event.event_id not in self._announced:
                why = {"why": event.data["reason"], "since": event.data["since"]}
                log.error("watch.stalled", extra={"what": event.subject, **why})
                await self.store.announce(bucket, event)
                self._announced.add(event.event_id)


def _due(row: AgendaRow) -> datetime | None:
    """Return since when the row is due; None if it holds no readable time, or no order id."""
    try:
        due = agenda.since(row)
    except ValueError:
        log.exception("watch.row_passed_over", extra={"row": row.key})
        return None
    return due if row.order_id else None


def _needs(row: AgendaRow) -> str:
    """Return the capability that a pending order needs; empty if its key has none."""
    return (row.key.split("|") + [""] * 3)[2]


def _of_order(row: AgendaRow) -> Announcement:
    event = alerts.stalled(
        f"{keys.ABOUT_ORDER}{row.order_id}", agenda.since(row), "it may be claimed, and is not"
    )
    return keys.bucket_of(row.order_id), event


def _of_listed(row: AgendaRow, reason: str) -> Announcement | None:
    """Return the announcement for an order; None if its row has no order id or readable time."""
    since = _due(row)
    if since is None:
        return None
    event = alerts.stalled(f"{keys.ABOUT_ORDER}{row.order_id}", since, reason)
    return keys.bucket_of(row.order_id), event
