"""What a business declares: what is to be done for an order, by which agents, and what its payload may be."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.workflow import Workflows

MAX_PAYLOAD = 32 * 1024
"""Of a payload as compact JSON, in UTF-16 units: what one property of a table can hold."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Payload:
    """What only the business knows of a payload, a JSON object.

    `check` is asked of what was sent; the others of whatever was recorded, also by another version, so none may raise.
    """

    check: Callable[[Mapping[str, Any]], None]
    """Raises `InvalidError` with all faults; `UnknownNameError` if a newer version of the app may know better."""
    erased: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    """Returns it without personal data; of what is erased already, the same."""
    personal: Callable[[Mapping[str, Any]], Iterable[str]]
    """Returns the values that no log and no history may show."""
    belongs_to: Callable[[Mapping[str, Any], str], bool]
    """Whether the order is that of the person whom an operator looks for."""


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
    """One business, as the engine is given it."""

    workflows: Workflows
    """Every workflow, and every version that orders in flight may still be on."""
    default_workflow: str
    """What is done for a submission that names no workflow."""
    agents: Sequence[Agent]
    """Those that carry out the steps."""
    payload: Payload


def offers_of(agents: Sequence[Agent]) -> Mapping[str, Sequence[str]]:
    """Return the agents that offer each capability, the preferred first."""
    offers: dict[str, list[str]] = {}
    for agent in agents:
        offers.setdefault(agent.offers, []).append(agent.name)
    return offers
