"""Notices on a timer of its own when nobody claims orders, or nobody sweeps (SUP-7)."""

import logging
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from core import agenda, alerts, keys
from core.agenda import AgendaRow, Kind
from core.changes import Event
from core.gathering import run_all
from core.ports import Clock, StateStore, SweepLog

log = logging.getLogger(__name__)

MOST = 1000
"""Of one bucket: where more wait, those that are looked at have waited long enough."""


@dataclass(kw_only=True)
class Watch:
    """Looks at the orders that are due to be claimed, and at the last sweep."""

    store: StateStore
    sweeps: SweepLog
    clock: Clock
    buckets: int
    longest_pending: timedelta
    """An order that may be claimed and is not for longer than this raises an alert."""
    longest_without_sweep: timedelta
    _told: set[str] = field(default_factory=set)
    """The events that this instance has announced: the outbox forgets them once they are sent."""
    _since: datetime | None = None

    async def look(self) -> timedelta:
        """Return, and log, how long the order has been waiting that could have been claimed first."""
        now = self.clock()
        waits = await run_all(self._pending(bucket, now) for bucket in keys.buckets(self.buckets))
        await self._sweeps(now)
        longest = max(waits)
        log.info("orders.waiting", extra={"longest_seconds": longest.total_seconds()})
        return longest

    async def _pending(self, bucket: str, now: datetime) -> timedelta:
        rows = await self.store.agenda(bucket, *agenda.all_of(Kind.PENDING), MOST)
        first = min((row for row in rows if _due(row) <= now), key=_due, default=None)
        if first is None:
            return timedelta()
        waits = now - _due(first)
        if waits > self.longest_pending:
            reason = f"it may be claimed since {_due(first):%Y-%m-%d %H:%M:%S} UTC, and is not"
            await self._announce(bucket, alerts.stalled(f"orders/{first.order_id}", _due(first), reason))
        return waits

    async def _sweeps(self, now: datetime) -> None:
        last = await self.sweeps.last()
        self._since = self._since or now
        since = last.at if last else self._since
        if now - since > self.longest_without_sweep:
            reason = f"no supervisor has swept since {since:%Y-%m-%d %H:%M:%S} UTC"
            await self._announce(keys.buckets(1)[0], alerts.stalled("supervisor", since, reason))

    async def _announce(self, bucket: str, event: Event) -> None:
        if event.event_id not in self._told:
            log.error("watch.stalled", extra={"what": event.subject, "why": event.data["reason"]})
            await self.store.announce(bucket, event)
            self._told.add(event.event_id)


def _due(row: AgendaRow) -> datetime:
    moment: datetime = row.data["NotBefore"]
    return moment
