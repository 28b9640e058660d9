"""Moves alerts from the operators' queue, which Event Grid fills, into the log."""

import logging
from dataclasses import dataclass

from alerts import rules
from core.errors import InvalidError
from stores.alert_log import AlertLog
from stores.poison import Arrival, PoisonStore

log = logging.getLogger(__name__)

QUEUE = "operator-alerts"


@dataclass(frozen=True, kw_only=True)
class AlertService:
    """Keeps what reached the operators (ALR-1)."""

    alert_log: AlertLog
    poison: PoisonStore

    async def record(self, body: bytes, arrival: Arrival) -> None:
        """Keep one alert that arrived on the operators' queue; the same one again changes nothing."""
        try:
            alert = rules.read(body)
        except InvalidError as fault:
            log.warning("alerts.unreadable", extra={"reason": str(fault)})
            await self.poison.put(QUEUE, body, str(fault), arrival)
        else:
            await self.alert_log.record(alert)
