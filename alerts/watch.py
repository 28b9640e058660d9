"""Alerts, on a timer of its own, when orders or submissions wait for long, or no sweep runs.

Implements SUP-7.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain

from core import agenda, alerts, keys
from core.agenda import AgendaRow, Kind
from core.changes import Event
from core.gathering import results_of, settle_all
from core.ports import Clock, TextQueue
from stores.agent_health import KEPT, AgentHealth, AgentHealthLog, hold_of, silent_since
from stores.claim_lanes import PAGE, BucketLook
from stores.orders import OrderStore
from stores.sweeps import SweepLog

log = logging.getLogger(__name__)

LONGEST_HELD = timedelta(hours=24)
"""An order or an agent that is held for longer was perhaps forgotten."""

LONGEST_START = timedelta(minutes=1)
"""Time to the first sweep after a pause of the whole system, even if a dead host's locks remain."""

Announcement = tuple[str, Event]
"""The bucket whose outbox takes an event, and the event."""


@dataclass(kw_only=True)
class Watch:
    """Looks for orders, submissions, agents and sweeps that stand still, and announces them."""

    store: OrderStore
    sweeps: SweepLog
    submissions: TextQueue
    agent_health: AgentHealthLog
    offers: Mapping[str, Sequence[str]]
    """The agents that offer each capability."""
    clock: Clock
    longest_pending: timedelta
    """How long an order may be due for a claim, or overdue, before an alert is raised."""
    longest_without_sweep: timedelta
    _announced: set[str] = field(default_factory=set)
    """Ids of the events that this instance has announced: the outbox forgets events once sent."""
    _submissions_since: datetime | None = None
    """Since when submissions wait for too long; a queue that moves slowly is one standstill."""

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
        unserved, held_until = set[str](), dict[str, datetime]()
        others = [
            self._sweeps(now),
            self._submissions(now),
            self._agents(now, unserved, held_until),
        ]
        for bucket in self.store.buckets:
            others += [self._not_recovered(bucket, now), self._held_for_long(bucket, now)]
        standing = await settle_all(others)
        waits = {row.key: now - _waits_since(row, held_until) for row in waiting}
        late = [row for row in waiting if waits[row.key] > self.longest_pending]
        found = [_of_order(row) for row in late if _needs(row) not in unserved]
        for each in standing:
            if not isinstance(each, Exception):
                found += each
        await self._announce(found)
        results_of([*looks, *standing])
        longest = max([timedelta(), *waits.values()])
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

    async def _agents(
        self, now: datetime, unserved: set[str], held_until: dict[str, datetime]
    ) -> list[Announcement]:
        """Return the agents that are silent or held for too long.

        Add to `unserved` the capabilities that only silent or held agents offer: the orders that
        wait for them are not announced one by one. Add to `held_until` the capabilities all of
        whose agents operators hold, or have held lately, and when the first of these holds ends.
        """
        health = await self.agent_health.since(now - KEPT)
        agents = dict.fromkeys(chain.from_iterable(self.offers.values()))
        since_when = {agent: silent_since(health, agent, now) for agent in agents}
        silent = {agent: since for agent, since in since_when.items() if since}
        held = {agent: hold for agent in agents if (hold := hold_of(health, agent, now))}
        holds_end = {each.agent: each.held_until for each in health if each.held_until}
        for capability, offering in self.offers.items():
            if silent.keys() | held.keys() >= set(offering):
                unserved.add(capability)
            if holds_end.keys() >= set(offering):
                held_until[capability] = min(holds_end[agent] for agent in offering)
        return [*self._silent_for_long(silent, now), *self._agents_held_for_long(held, now)]

    def _silent_for_long(
        self, silent: Mapping[str, datetime], now: datetime
    ) -> Iterator[Announcement]:
        for agent, since in silent.items():
            if now - since > self.longest_pending:
                yield self._of_agent(agent, since, f"nobody takes the requests to {agent}")

    def _agents_held_for_long(
        self, held: Mapping[str, AgentHealth], now: datetime
    ) -> Iterator[Announcement]:
        for agent, hold in held.items():
            if now - hold.at > LONGEST_HELD:
                yield self._of_agent(agent, hold.at, f"{agent} is held for long: release it")

    def _of_agent(self, agent: str, since: datetime, reason: str) -> Announcement:
        event = alerts.stalled(f"{alerts.ABOUT_AGENT}{agent}", since, reason)
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

    async def _submissions(self, now: datetime) -> list[Announcement]:
        """Return whether submissions wait: those that no customer's call put there, too."""
        head = await self.submissions.oldest()
        if head is None or now - head <= self.longest_pending:
            self._submissions_since = None
            return []
        since = self._submissions_since = self._submissions_since or head
        event = alerts.stalled(alerts.SUBMISSIONS, since, "submissions wait in their queue")
        return [(self.store.buckets[0], event)]

    async def _not_recovered(self, bucket: str, now: datetime) -> list[Announcement]:
        """Return the orders that are overdue for too long: no sweep has recovered them."""
        why, late = "it is overdue, and nobody could recover it", now - self.longest_pending
        running = await self._all(bucket, *agenda.overdue(late), why)
        return running + await self._all(bucket, *agenda.overdue(late, Kind.WAITING), why)

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


def _waits_since(row: AgendaRow, held_until: Mapping[str, datetime]) -> datetime:
    """Return since when the order could be claimed: a time that an operator chose is no delay."""
    since = agenda.since(row)
    return max(since, held_until.get(_needs(row), since))


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
