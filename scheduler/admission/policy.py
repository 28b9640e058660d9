"""How many requests may be open at an agent: the rule, and its simplest form."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from engine.storage.agent_health import AgentHealth


@dataclass(frozen=True, kw_only=True, slots=True)
class Capacity:
    """The declared limits of an agent, which hold before it reports anything."""

    most: int
    """Maximum number of open requests, whatever rate it reports."""
    first: int
    """Maximum while its health is unknown: enough failures to open the circuit, and no more."""
    allowance: timedelta
    """How long an attempt may take: the shortest time of its steps."""


class AdmissionPolicy(Protocol):
    """Decides how many requests may be open at an agent that makes calls."""

    def limit(
        self, agent: str, capacity: Capacity, health: Sequence[AgentHealth], now: datetime
    ) -> int:
        """Return the maximum number of open requests; `health` has the reports of all agents."""


@dataclass(frozen=True)
class FixedLimit:
    """The declared number of requests, whatever the agent reports."""

    def limit(
        self, agent: str, capacity: Capacity, health: Sequence[AgentHealth], now: datetime
    ) -> int:
        """Return the declared number."""
        del agent, health, now
        return capacity.most
