"""What comes next for an order: who acts, when, and with which change (OPR-2).

The rules are not repeated here. The module calls the rules that will act: the scheduler's claim at
the earliest time, and the supervisor's recovery after the complete-by time.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import chain

from engine.decisions.transitions import Decision, NotClaimed, Transition
from engine.domain.orders import OrderAggregate, Pending, Processing
from engine.domain.states import AtWork, UnderWay
from engine.domain.statuses import NotClaimable
from engine.domain.work_index import first_need
from engine.storage.agent_health import AgentHealth, requests_from, unresponsive_since

INSTANT = timedelta(microseconds=1)

Claim = Callable[
    [OrderAggregate, datetime, Mapping[str, Sequence[str]], Mapping[str, datetime]], Decision
]
"""The scheduler's claim. Its last arguments are the agents with capacity, by capability, and the
silent agents with the times since which they are silent."""

Recover = Callable[[OrderAggregate, datetime, Sequence[AgentHealth]], Decision]
"""The supervisor's recovery. Its last argument has the agents' health reports."""


class Actor(StrEnum):
    """The roles that can act on an order."""

    SCHEDULER = "scheduler"
    AGENT = "agent"
    SUPERVISOR = "supervisor"
    OPERATOR = "operator"
    OUTSIDE = "outside"
    """A person or a service outside, from whom a step waits for an answer (ANS-1)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ActingRules:
    """The rules by which scheduler and supervisor act on orders."""

    claim: Claim
    recover: Recover
    poll_delay: timedelta
    """For this time, an order is left to the process that receives its wake-up."""
    clock_tolerance: timedelta
    offers: Mapping[str, Sequence[str]]
    """The agents that offer each capability, the preferred agent first."""
    version_overlap: timedelta
    """How long the scheduler leaves an order to a newer version of the app (FLT-12)."""
    max_silence: timedelta
    """How long an order waits for silent agents before its step fails (SUP-9)."""
    agent_health: Sequence[AgentHealth] = ()
    """The recent health reports of the agents."""

    def turning_points(self, order: OrderAggregate, now: datetime) -> list[datetime]:
        """Return the times at which the result of a claim may change, in ascending order.

        At these times, a closed or silent agent gets requests again, or the order's step fails.
        """
        offering = self.offers.get(capability_of(order), ())
        times = [requests_from(self.agent_health, agent, now) for agent in offering]
        if given_up := self.given_up_at(order, now):
            times.append(given_up + INSTANT)
        return sorted(time for time in times if time and time > now)

    def claimed(self, order: OrderAggregate, at: datetime) -> Decision:
        """Return the result of a claim at this time if every agent has capacity.

        Whether an agent really has capacity is known only at the moment of the claim.
        """
        health, agents = self.agent_health, set(chain.from_iterable(self.offers.values()))
        open_agents = {agent for agent in agents if not requests_from(health, agent, at)}
        capacity = {
            capability: [agent for agent in offering if agent in open_agents]
            for capability, offering in self.offers.items()
        }
        since_when = {agent: unresponsive_since(health, agent, at) for agent in agents}
        silent = {agent: since for agent, since in since_when.items() if since}
        return self.claim(order, at, capacity, silent)

    def given_up_at(self, order: OrderAggregate, now: datetime) -> datetime | None:
        """Return when the order's step fails because of silent agents. None if it does not.

        The step does not fail while any agent for it is not silent (SUP-9), nor after the deadline
        of the order (SCH-17).
        """
        offering = self.offers.get(capability_of(order), ())
        times = [unresponsive_since(self.agent_health, agent, now) for agent in offering]
        since = [time for time in times if time]
        if not since or len(since) < len(times):
            return None
        at = max(*since, order.derived.ready_since) + self.max_silence
        return None if order.is_out_of_time(at) else at

    def recovered(self, order: OrderAggregate, at: datetime) -> Decision:
        """Return the recovery at this time if there is no reply before it."""
        return self.recover(order, at, self.agent_health)


@dataclass(frozen=True, kw_only=True, slots=True)
class Prospect:
    """The next act on an order: who acts, from when on, and with which change, if known."""

    actor: Actor
    at: datetime | None = None
    transition: Transition | None = None
    circuits_open: bool = False
    """Whether no agent gets the request that the order needs before `at`."""
    why_not: NotClaimable | None = None
    """Why the order is not claimed before `at`. None if only capacity may be missing."""


def what_comes(order: OrderAggregate, rules: ActingRules, now: datetime) -> Prospect | None:
    """Return the next expected act. None for an order that has ended and needs none."""
    match order.state:
        case Pending():
            return _claim(order, rules, max(now, order.derived.not_before or now), now)
        case Processing():
            return _answer_or_recovery(order, rules, now)
    return None if order.is_over else Prospect(actor=Actor.OPERATOR)


def what_comes_otherwise(
    order: OrderAggregate, rules: ActingRules, now: datetime
) -> Prospect | None:
    """Return the act of the scheduler's poll or the supervisor's sweep if no message arrives."""
    found = [recovery(order, rules, now)]
    if order.blocked() is None:
        found.append(_claim(order, rules, max(now, polled_from(order, rules, now)), now))
    others = (Actor.AGENT, Actor.OUTSIDE)
    acts = (act for act in found if act and act.at and act.actor not in others)
    return min(acts, key=lambda act: act.at or now, default=None)


def polled_from(order: OrderAggregate, rules: ActingRules, now: datetime) -> datetime:
    """Return when every process may claim the order: at its start time, or after its wake-up."""
    changed = order.updated_at
    # A last change far ahead comes from a clock that is ahead. Nobody waits for that time.
    soon = changed + rules.poll_delay if changed < now + rules.poll_delay else now
    return order.derived.not_before or soon


def _claim(
    order: OrderAggregate, rules: ActingRules, at: datetime, now: datetime
) -> Prospect | None:
    """Return the claim at `at`, or when an agent that the order needs makes calls again.

    If the deadline of the order comes earlier, return the supervisor's act at the deadline.
    """
    refused = []
    for then in (at, *rules.turning_points(order, at)):
        transition = rules.claimed(order, then)
        if isinstance(transition, Transition):
            return Prospect(
                actor=Actor.SCHEDULER, at=then, transition=transition, circuits_open=then > at
            )
        if isinstance(transition, NotClaimed):
            refused.append(transition.why)
    if order.has_any(UnderWay):
        return _answer_or_recovery(order, rules, at)
    if NotClaimable.DEADLINE_PASSED in refused:
        return recovery(order, rules, now)
    why_not = next(iter(refused), None)
    if why_not in (NotClaimable.UNKNOWN_WORKFLOW, NotClaimable.UNKNOWN_PROVIDER):
        return _given_up(order, rules, at, why_not)
    return Prospect(actor=Actor.OPERATOR, why_not=why_not)


def _given_up(
    order: OrderAggregate, rules: ActingRules, now: datetime, why_not: NotClaimable
) -> Prospect:
    """Return how the order ends, unless a newer app claims it before (FLT-12)."""
    at = max(now, order.derived.ready_since + rules.version_overlap + INSTANT)
    transition = rules.claimed(order, at)
    if not isinstance(transition, Transition):
        return Prospect(actor=Actor.SCHEDULER, why_not=why_not)
    return Prospect(actor=Actor.SCHEDULER, at=at, transition=transition, why_not=why_not)


def _answer_or_recovery(
    order: OrderAggregate, rules: ActingRules, now: datetime
) -> Prospect | None:
    """Return the next act on an order that has running steps and cannot be claimed."""
    if not order.with_deadline():
        return Prospect(actor=Actor.OPERATOR)
    if order.overdue(now, rules.clock_tolerance):
        return recovery(order, rules, now)
    actor = Actor.AGENT if order.has_any(AtWork) else Actor.OUTSIDE
    return Prospect(actor=actor, at=_first_deadline(order))


def recovery(order: OrderAggregate, rules: ActingRules, now: datetime) -> Prospect | None:
    """Return what a supervisor does if nothing happens before. None if nothing becomes due."""
    due = _first_check(order)
    if due is None:
        return None
    at = max(now, due + rules.clock_tolerance + INSTANT)
    decision = rules.recovered(order, at)
    transition = decision if isinstance(decision, Transition) else None
    return Prospect(actor=Actor.SUPERVISOR, at=at, transition=transition)


def _first_check(order: OrderAggregate) -> datetime | None:
    """Return when a supervisor checks the order: at a complete-by time, or for its deadline."""
    deadline = order.pending_deadline
    check = deadline.next_check if deadline else None
    return min(filter(None, (_first_deadline(order), check)), default=None)


def _first_deadline(order: OrderAggregate) -> datetime | None:
    return min((step.state.complete_by for step in order.with_deadline()), default=None)


def capability_of(order: OrderAggregate) -> str:
    return first_need(order, order.derived.ready_since)
