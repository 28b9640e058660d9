"""What agents tell of themselves, so that work goes where it can be done in time (AGT-8, AGT-10, WRK-2)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentHealth:
    """How one instance of an agent is doing."""

    agent: str
    instance: str
    at: datetime
    waited: float
    """The longest that a request waited lately before its work began, as a share of the time that it had (0 to 1)."""
    running: int
    """Calls in progress."""
    open_until: datetime | None = None
    """While the instance's circuit is open: until when it makes no call."""

    def counts(self, since: datetime) -> bool:
        """Whether it says something of the time since then; that a circuit is open, it says until that is over."""
        return self.at >= since or self.is_open(since)

    def is_open(self, now: datetime) -> bool:
        """Whether the instance makes no calls now."""
        return self.open_until is not None and self.open_until > now


def longest_wait(agent_health: Iterable[AgentHealth]) -> float | None:
    """Return the largest of the waits; None without any measure."""
    return max((health.waited for health in agent_health), default=None)


def open_until(agent_health: Iterable[AgentHealth], now: datetime) -> datetime | None:
    """Return when the first instance of an agent makes calls again, if now none does; None if any may."""
    known = list(agent_health)
    if not all(health.is_open(now) for health in known):
        return None
    return min((health.open_until for health in known if health.open_until), default=None)
