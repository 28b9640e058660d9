"""Moves alerts from the outbox to Event Grid, and from the operators' queue into the log."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from alerts import rules
from core import keys
from core.changes import Event, OutboxEntry
from core.errors import InvalidError, UnavailableError
from core.gathering import run_all
from core.poison import Arrival
from core.ports import AlertLog, EventPublisher, PoisonStore, StateStore

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
    poison: PoisonStore
    buckets: int

    async def relay(self) -> int:
        """Send every event that waits in the outbox, then confirm it; return how many were sent."""
        return sum(await run_all(self._relay_bucket(bucket) for bucket in keys.buckets(self.buckets)))

    async def _relay_bucket(self, bucket: str) -> int:
        """Go through the outbox, page by page, and past what cannot be sent."""
        sent, start = 0, ""
        for _ in range(MOST_PAGES):
            page = await self.store.outbox(bucket, PAGE, start)
            sent += await self._relay_page(bucket, page)
            if len(page) < PAGE:
                break
            start = f"{page[-1].key} "
        return sent

    async def _relay_page(self, bucket: str, page: Sequence[OutboxEntry]) -> int:
        for entry in page:
            if entry.fault:
                log.error("alerts.row_passed_over", extra={"row": entry.key, "why": entry.fault})
        readable = [(entry.key, entry.event) for entry in page if entry.event]
        return await self._send(bucket, readable) if readable else 0

    async def _send(self, bucket: str, waiting: Sequence[tuple[str, Event]]) -> int:
        """Send the events and confirm them; if they are refused, each by itself. One that is refused stays."""
        try:
            await self.publisher.publish([event for _, event in waiting])
        except UnavailableError:
            raise
        except Exception:
            if len(waiting) > 1:
                return sum(await run_all(self._send(bucket, [each]) for each in waiting))
            log.exception("alerts.refused", extra={"row": waiting[0][0]})
            return 0
        await self.store.confirm(bucket, [key for key, _ in waiting])
        return len(waiting)

    async def record(self, body: bytes, arrival: Arrival) -> None:
        """Keep one alert that arrived on the operators' queue; the same one again changes nothing."""
        try:
            alert = rules.read(body)
        except InvalidError as fault:
            log.warning("alerts.unreadable", extra={"reason": str(fault)})
            await self.poison.put(QUEUE, body, str(fault), arrival)
        else:
            await self.alert_log.record(alert)
