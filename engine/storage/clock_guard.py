"""Stops sweeps, polls, claims and retention in a process whose clock is wrong (FLT-9)."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from engine.alerts import events as alerts
from engine.domain.clocks import ClockSkew
from engine.domain.keys import spread_over
from engine.ports import ClockCheck
from engine.storage.orders import OrderStore

log = logging.getLogger(__name__)

TELL_AGAIN_SECONDS = 60.0


@dataclass(kw_only=True)
class ClockGuard:
    """Checks the clock before work that depends on the time and looks for orders by itself."""

    check: ClockCheck
    store: OrderStore
    instance: str
    monotonic: Callable[[], float] = time.monotonic
    _announced: ClockSkew | None = None
    _tell_again_at: float | None = None
    """When the next log line about a wrong clock is due. None while the clock is right."""

    async def agrees(self) -> bool:
        """Whether this process's clock agrees with the store's.

        If it does not, one alert is recorded for each period of disagreement. Raises
        `UnavailableError` if the alert cannot be recorded.
        """
        skew = await self.check()
        if skew is None:
            self._right()
            return True
        self._log(skew)
        if skew != self._announced:
            event = alerts.clock_off(self.instance, skew)
            await self.store.announce(spread_over(self.store.buckets, event.event_id), event)
            self._announced = skew
        return False

    def _log(self, skew: ClockSkew) -> None:
        """Log an error once a minute, for the alert that counts these lines."""
        now = self.monotonic()
        if self._tell_again_at is None or now >= self._tell_again_at:
            self._tell_again_at = now + TELL_AGAIN_SECONDS
            log.error(
                "clock.off", extra={"instance": self.instance, "seconds": skew.by.total_seconds()}
            )

    def _right(self) -> None:
        if self._tell_again_at is not None:
            self._tell_again_at = None
            log.warning("clock.right_again", extra={"instance": self.instance})
