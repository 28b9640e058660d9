"""Notices on a timer of its own when nobody claims orders, or nobody sweeps (SUP-7)."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from core import agenda, alerts, keys
from core.agenda import AgendaRow
from core.changes import Event
from core.gathering import results_of, settle_all
from core.ports import Clock
from stores.claim_lanes import first_of_each_claim_lane
from stores.orders import OrderStore
from stores.sweeps import SweepLog

log = logging.getLogger(__name__)

LONGEST_START = timedelta(minutes=1)
"""After a pause of the whole system somebody sweeps within this time, also if a dead host's timers are still locked."""

Told = tuple[str, Event]
"""An event, and the bucket in whose outbox it is put."""


@dataclass(kw_only=True)
class Watch:
    """Looks at the orders that are due to be claimed, and at the last sweep."""

    store: OrderStore
    sweeps: SweepLog
    clock: Clock
    longest_pending: timedelta
    """An order that may be claimed and is not for longer than this raises an alert."""
    longest_without_sweep: timedelta
    _told: set[str] = field(default_factory=set)
    """What stands still and was announced by this instance: the outbox forgets events once they are sent."""

    async def look(self) -> timedelta:
        """Return, and log, how long the order has been waiting that could have been claimed first.

        If a bucket cannot be read, `UnavailableError` is raised in the end, once it is told what is seen of the others.
        """
        now = self.clock()
        waiting: list[AgendaRow] = []
        looks = await settle_all(self._look_into(bucket, now, waiting) for bucket in self.store.buckets)
        late = [row for row in waiting if now - agenda.since(row) > self.longest_pending]
        (sweeps,) = await settle_all([self._sweeps(now)])
        await self._tell([*map(_of_order, late), *([] if isinstance(sweeps, Exception) else sweeps)])
        results_of([*looks, sweeps])
        longest = max((now - agenda.since(row) for row in waiting), default=timedelta())
        log.info("orders.waiting", extra={"longest_seconds": longest.total_seconds()})
        return longest

    async def _look_into(self, bucket: str, now: datetime, waiting: list[AgendaRow]) -> None:
        """Add the first orders of each lane that are due, on past those that are late and were announced before."""
        late = now - self.longest_pending

        def unheard_of(row: AgendaRow) -> AgendaRow | None:
            try:
                due = agenda.since(row)
            except ValueError:
                log.exception("watch.row_passed_over", extra={"row": row.key})
                return None
            if not row.order_id:  # the poll logs it
                return None
            if due <= now:
                waiting.append(row)
            return row if due < late and _of_order(row)[1].event_id not in self._told else None

        await first_of_each_claim_lane(self.store, bucket, late, unheard_of)

    async def _sweeps(self, now: datetime) -> list[Told]:
        last = await self.sweeps.last()
        since = last.at if last else await self.sweeps.awaited_since(now)
        if now - since <= self.longest_without_sweep:
            return []
        if last and now - await self.sweeps.missed_since(last, now) < min(self.longest_without_sweep, LONGEST_START):
            return []
        return [(self.store.buckets[0], alerts.stalled(alerts.SUPERVISOR, since, "no supervisor sweeps"))]

    async def _tell(self, standing: Sequence[Told]) -> None:
        """Announce what was not announced before, and forget what goes on again."""
        self._told &= {event.event_id for _, event in standing}
        for bucket, event in standing:
            if event.event_id not in self._told:
                why = {"why": event.data["reason"], "since": event.data["since"]}
                log.error("watch.stalled", extra={"what": event.subject, **why})
                await self.store.announce(bucket, event)
                self._told.add(event.event_id)


def _of_order(row: AgendaRow) -> Told:
    event = alerts.stalled(f"{keys.ABOUT_ORDER}{row.order_id}", agenda.since(row), "it may be claimed, and is not")
    return keys.bucket_of(row.order_id), event
