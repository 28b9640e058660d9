"""Says how long orders wait to be claimed, on a timer of its own: so it is noticed when nobody claims any (SUP-7)."""

import logging
from dataclasses import dataclass
from datetime import timedelta

from core import agenda, keys
from core.gathering import run_all
from core.ports import Clock, StateStore

log = logging.getLogger(__name__)

MOST = 1000
"""Of one bucket: where more wait, those that are looked at have waited long enough."""


@dataclass(frozen=True, kw_only=True)
class Watch:
    """Looks at the orders that are due to be claimed."""

    store: StateStore
    clock: Clock
    buckets: int

    async def look(self) -> timedelta:
        """Return, and log, how long the order has been waiting that could have been claimed first."""
        now = self.clock()
        start, end = agenda.all_of(agenda.Kind.PENDING)
        pages = await run_all(self.store.agenda(bucket, start, end, MOST) for bucket in keys.buckets(self.buckets))
        due = (row.data["NotBefore"] for page in pages for row in page)
        since = min((moment for moment in due if moment <= now), default=now)
        log.info("orders.waiting", extra={"longest_seconds": (now - since).total_seconds()})
        return now - since
