"""Whether Service Bus is there, so that nothing is claimed while no request would go out (FLT-8)."""

from datetime import datetime, timedelta

from core.errors import UnavailableError
from core.messages import SCHEDULER_REQUESTS
from core.ports import Bus, Clock

PAUSE = timedelta(seconds=2)
"""Between two questions whether the bus is back."""


class Reach:
    """What one process knows of the bus: it is there until something could not be sent, and then once it answers."""

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock
        self._ask_at: datetime | None = None
        """When to ask again; None while the bus is there."""

    def lost(self) -> None:
        """Note that something could not be sent."""
        self._ask_at = self._clock() + PAUSE

    async def is_there(self) -> bool:
        """Whether requests would go out now; of all who want to know, one asks the bus at a time."""
        if self._ask_at is None:
            return True
        if self._clock() < self._ask_at:
            return False
        self.lost()
        try:
            await self._bus.probe([SCHEDULER_REQUESTS])
        except UnavailableError:
            return False
        self._ask_at = None
        return True
