"""The rule for how many requests may be open at an agent, and its simplest form."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from engine.storage.agent_health import AgentHealth


@dataclass(frozen=True, kw_only=True, slots=True)
class Capacity:
    """The declared limits of an agent, which apply before it reports anything."""

    most: int
    """The most open requests, whatever rate the agent reports."""
    first: int
    """The most while the agent's health is unknown: just enough failures to open the circuit."""
    allowance: timedelta
    """How long an attempt may take: the shortest time-out of the agent's steps."""


class AdmissionPolicy(Protocol):
    """Decides how many requests may be open at an agent that makes calls."""

    def limit(
        self, agent: str, capacity: Capacity, health: Sequence[AgentHealth], now: datetime
    ) -> int:
        """Return the most open requests. `health` has the reports of all agents."""


@dataclass(frozen=True)
class FixedLimit:
    """The declared number of requests, whatever the agent reports."""

    def limit(
        self, agent: str, capacity: Capacity, health: Sequence[AgentHealth], now: datetime
    ) -> int:
        del agent, health, now
        return capacity.most
