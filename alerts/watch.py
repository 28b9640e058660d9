"""Says how long orders wait to be claimed, on a timer of its own: so it is noticed when nobody claims any (SUP-7)."""

import logging
from dataclasses import dataclass
from datetime import timedelta

from core import agenda, keys
from core.gathering import run_all
from core.orders import Priority
from core.ports import Clock, StateStore

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Watch:
    """Looks at the order of each bucket and priority that has waited longest."""

    store: StateStore
    clock: Clock
    buckets: int

    async def look(self) -> timedelta:
        """Return, and log, how long the order has been waiting that could be claimed first."""
        now = self.clock()
        ranges = [agenda.claimable(priority, now) for priority in Priority]
        pages = await run_all(
            self.store.agenda(bucket, start, end, limit=1)
            for bucket in keys.buckets(self.buckets)
            for start, end in ranges
        )
        since = min((agenda.claimable_since(row) for page in pages for row in page), default=now)
        log.info("orders.waiting", extra={"longest_seconds": (now - since).total_seconds()})
        return now - since
