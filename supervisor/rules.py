"""The decision after a step's complete-by time has passed without a valid reply (SUP-3)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.decisions.recover import recover
from engine.decisions.step_kinds import AttemptReport
from engine.decisions.transitions import Transition, transition_of
from engine.domain.messages import request_id_of
from engine.domain.orders import OrderAggregate
from engine.domain.states import AtWork
from engine.domain.steps import Step
from engine.storage.agent_health import (
    AgentHealth,
    fault_of,
    has_begun,
    has_reported,
    is_overloaded,
)

FOUND_WITHIN = timedelta(minutes=1)
"""While sweeps run, an overdue step is found within this time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SupervisorRules:
    """The decisions of a supervisor instance.

    They are pure functions with the time as an argument.
    """

    instance: str
    clock_tolerance: timedelta
    max_unbegun_attempts: int
    """A step fails after this many requests in a row that no agent began (SUP-9)."""

    def recover(
        self, order: OrderAggregate, now: datetime, health: Sequence[AgentHealth] | None
    ) -> Transition | None:
        """Act on expired steps, and on the order's deadline. None if nothing has expired.

        `health` has the agents' health reports. It is None if they cannot be read. Then no failure
        is counted, and no step fails.
        """
        reports = _reports_of(order, health)
        next_version = recover(order, now, reports, self.clock_tolerance, self.max_unbegun_attempts)
        if next_version is None:
            return None
        return transition_of(next_version, f"supervisor/{self.instance}")

    def unresponsive_agents(
        self, order: OrderAggregate, now: datetime, health: Sequence[AgentHealth]
    ) -> Iterator[tuple[str, datetime]]:
        """Yield the agents that have not reported since the request of an expired step.

        Each comes with the time of the request. If no sweep has found the step in time, the whole
        app may have been unavailable. Then the silence begins with an attempt that would end now.
        An attempt that its order's deadline cut short shows nothing, because its agent may have had
        no time to begin it.
        """
        for step in order.in_state(AtWork):
            requested_at = step.started_at
            if (
                requested_at
                and not step.state.started_at
                and step.is_expired(now, self.clock_tolerance)
                and not has_reported(health, step.agent, requested_at)
            ):
                is_in_time = now - step.state.complete_by <= FOUND_WITHIN
                yield step.agent, requested_at if is_in_time else now - step.rules.timeout


def _reports_of(
    order: OrderAggregate, health: Sequence[AgentHealth] | None
) -> Mapping[str, AttemptReport]:
    """Return what agents have reported about each running attempt, by its request."""
    attempts = {request_id_of(order.order_id, step): step for step in order.in_state(AtWork)}
    return {request: _report_of(request, step, health) for request, step in attempts.items()}


def _report_of(request: str, step: Step, health: Sequence[AgentHealth] | None) -> AttemptReport:
    if health is None:
        return AttemptReport(is_known=False)
    fault = fault_of(health, request)
    return AttemptReport(
        has_begun=has_begun(health, request),
        fault=fault.text if fault else None,
        by_gateway=fault is not None and fault.by_gateway,
        agent_overloaded=is_overloaded(health, step.agent, request, step.rules.timeout),
    )
