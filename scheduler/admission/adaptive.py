"""The limit that follows the rate at which an agent works (AGT-10, WRK-2)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.storage.agent_health import FRESH, PROBE_REQUESTS, AgentHealth
from scheduler.admission.policy import Capacity

PREFETCH_FRACTION = 0.3
"""The share of an attempt's time for which requests may queue at an agent."""


@dataclass(frozen=True)
class AdaptiveLimit:
    """Allows as many requests as get answers in time, at the rate that the instances report."""

    def limit(
        self, agent: str, capacity: Capacity, health: Sequence[AgentHealth], now: datetime
    ) -> int:
        """Return how many requests may be open at the agent.

        The limit follows the reported rate, up to the declared number. While there is neither a
        rate nor a sign of trouble, it is the number of failures that opens the circuit.
        """
        reports = [report for report in health if report.agent == agent]
        rates = [report.rate for report in reports if now - report.at < FRESH]
        in_trouble = any(
            report.open_until or report.paused_until or report.unresponsive_since
            for report in reports
        )
        if not rates and not in_trouble:
            return min(capacity.most, capacity.first)
        return min(capacity.most, open_at(sum(rates), capacity.allowance))


def open_at(rate: float, allowance: timedelta) -> int:
    """Return how many requests may be open at an agent that gets this many answers per second.

    They are the requests for the share `PREFETCH_FRACTION` of an attempt's time, and
    `PROBE_REQUESTS` more.
    """
    return PROBE_REQUESTS + math.ceil(rate * allowance.total_seconds() * PREFETCH_FRACTION)
