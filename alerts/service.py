"""Moves alerts from the outbox to Event Grid, and from the operators' queue into the log."""

import logging
from dataclasses import dataclass

from alerts import rules
from core import keys
from core.errors import InvalidError
from core.gathering import run_all
from core.ports import AlertLog, EventPublisher, PoisonQueues, StateStore

log = logging.getLogger(__name__)

QUEUE = "operator-alerts"
PAGE = 100
"""Events that are sent at once; one transaction confirms them."""

MOST_PAGES = 50
"""Of a bucket in one run: what is left waits for the next one."""


@dataclass(frozen=True, kw_only=True)
class AlertService:
    """Sends at least once what was committed with a transition: no crash in between can lose it (ALR-1)."""

    store: StateStore
    publisher: EventPublisher
    alert_log: AlertLog
    poison: PoisonQueues
    buckets: int

    async def relay(self) -> int:
        """Send every event that waits in the outbox, then confirm it; return how many were sent."""
        return sum(await run_all(self._relay_bucket(bucket) for bucket in keys.buckets(self.buckets)))

    async def _relay_bucket(self, bucket: str) -> int:
        """Go on while pages are full: what is confirmed is gone, so the outbox begins with the next page."""
        sent = 0
        for _ in range(MOST_PAGES):
            waiting = await self.store.outbox(bucket, PAGE)
            if waiting:
                await self.publisher.publish([entry.event for entry in waiting])
                await self.store.confirm(bucket, [entry.key for entry in waiting])
            sent += len(waiting)
            if len(waiting) < PAGE:
                break
        return sent

    async def record(self, body: bytes) -> None:
        """Keep one alert that arrived on the operators' queue; the same one again changes nothing."""
        try:
            alert = rules.read(body)
        except InvalidError as fault:
            log.warning("alerts.unreadable", extra={"reason": str(fault)})
            await self.poison.put(QUEUE, body, str(fault))
        else:
            await self.alert_log.record(alert)
