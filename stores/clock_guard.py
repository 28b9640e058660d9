"""Keeps a process whose clock is off from what would harm orders: sweeps, polls, claims, retention (FLT-9)."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from core import alerts
from core.clocks import ClockSkew
from core.keys import spread_over
from core.ports import ClockCheck
from stores.orders import OrderStore

log = logging.getLogger(__name__)

TELL_AGAIN_SECONDS = 60.0


@dataclass(kw_only=True)
class ClockGuard:
    """Asked before any work that goes by the time and decides about orders that nobody has mentioned."""

    check: ClockCheck
    store: OrderStore
    instance: str
    monotonic: Callable[[], float] = time.monotonic
    _announced: ClockSkew | None = None
    _tell_again_at: float | None = None
    """When to log next that the clock is off; None while it is right."""

    async def agrees(self) -> bool:
        """Whether our clock agrees with the store's; if not, operators are told, once for each beginning.

        Raises `UnavailableError` if that cannot be recorded.
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
        """Say it as an error, again each minute: an alert counts these."""
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
