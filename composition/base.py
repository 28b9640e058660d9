"""What every role is made from: the settings, the adapters, and what follows from them alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

from adapters import Adapters
from adapters.settings import Settings
from core.business import Business
from core.messages import bus_queues
from core.transitions import Transitions
from scheduler.rules import SchedulerRules
from supervisor.rules import SupervisorRules


@dataclass(frozen=True)
class Base:
    """One app's business, settings and adapters."""

    business: Business
    settings: Settings
    parts: Adapters

    @cached_property
    def transitions(self) -> Transitions:
        """The one way to change an order."""
        return Transitions(self.parts.store, self.parts.bus, self.parts.clock, self.parts.new_id)

    @cached_property
    def tolerance(self) -> timedelta:
        """By how much the clocks of two machines may differ."""
        return timedelta(seconds=self.settings.clock_tolerance_seconds)

    @cached_property
    def agents(self) -> Sequence[str]:
        """The names of the agents."""
        return [agent.name for agent in self.settings.agents()]

    @cached_property
    def offers(self) -> Mapping[str, Sequence[str]]:
        """The agents that offer each capability, the preferred first."""
        offers: dict[str, list[str]] = {}
        for agent in self.settings.agents():
            offers.setdefault(agent.offers, []).append(agent.name)
        return offers

    @cached_property
    def bus_queues(self) -> Sequence[str]:
        """The queues by which scheduler and agents talk."""
        return bus_queues(self.agents)

    @cached_property
    def scheduler_rules(self) -> SchedulerRules:
        """What the scheduler decides by; operators are told by them what comes next."""
        return SchedulerRules(
            instance=self.settings.instance_id,
            workflows=self.business.workflows,
            payload=self.business.payload,
            clock_tolerance=self.tolerance,
        )

    @cached_property
    def supervisor_rules(self) -> SupervisorRules:
        """What the supervisor decides by."""
        return SupervisorRules(instance=self.settings.instance_id, clock_tolerance=self.tolerance)
