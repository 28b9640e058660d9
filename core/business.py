"""What a business declares, and the engine knows of it: the workflows, and the agents that carry out their steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.workflow import Workflows


@dataclass(frozen=True, kw_only=True, slots=True)
class Agent:
    """One agent, declared once: its queues, its settings and its simulated service follow from it (AGT-1)."""

    name: str
    offers: str
    """What it can be asked for; of several agents that offer the same, the one declared first is preferred (AGT-10)."""
    address: str
    """The setting that holds the address of its service."""
    optional: bool = False
    """Whether the app does without it where that setting says nothing."""
    calls_in_flight: int = 100
    """How many calls one instance may have under way at a time, unless the setting says otherwise."""
    refusal: str = "refused"
    """Why its simulated service says no, if told to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Business:
    """All that one deployment is for."""

    workflows: Workflows
    agents: Sequence[Agent]


def offers_of(agents: Sequence[Agent]) -> Mapping[str, Sequence[str]]:
    """Return the agents that offer each capability, the preferred first."""
    offers: dict[str, list[str]] = {}
    for agent in agents:
        offers.setdefault(agent.offers, []).append(agent.name)
    return offers
