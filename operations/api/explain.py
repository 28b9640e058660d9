"""Explains an order (OPR-2): what it waits for, who acts next and when, and what happens otherwise.

The rules are not repeated here. The explanation asks the rules that act what they would do with the
order: the scheduler's claim at the earliest time, and the supervisor's recovery after the
complete-by time.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from engine.decisions.transitions import Decision, NotClaimed, Transition
from engine.domain.errors import UnreadableRowError
from engine.domain.messages import request_id
from engine.domain.orders import Hold, InError, OrderAggregate, Pending, Processing
from engine.domain.states import (
    AtWork,
    AwaitingExternalEvent,
    BackingOff,
    CoolingDown,
    Delayed,
    Failed,
    LateEffectsPossible,
    NothingToUndo,
    Scheduled,
    Skipped,
    UnderWay,
    UndoFailed,
    Undoing,
    Wait,
)
from engine.domain.statuses import NotClaimable, Outcome
from engine.domain.steps import Step
from engine.domain.work_index import first_need
from engine.http.models import View
from engine.storage.agent_health import AgentHealth, closed_until, fault_of
from engine.words.causes import words_of
from engine.words.values import clock
from operations.api.agents import closed_in_words, load_in_words
from operations.api.views import StepStateView, step_state_view

INSTANT = timedelta(microseconds=1)
AS_IT_IS = "It stays as it is."

Claim = Callable[[OrderAggregate, datetime, Mapping[str, Sequence[str]]], Decision]
"""The scheduler's claim; its last argument are the agents with room now, by capability."""

Recover = Callable[[OrderAggregate, datetime, Sequence[AgentHealth]], Decision]
"""The supervisor's recovery; its last argument are the agents' health reports."""


class Actor(StrEnum):
    """The roles that can act on an order."""

    SCHEDULER = "scheduler"
    AGENT = "agent"
    SUPERVISOR = "supervisor"
    OPERATOR = "operator"
    OUTSIDE = "outside"
    """Somebody outside, whose answer a step awaits (ANS-1)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ActingRules:
    """The rules by which scheduler and supervisor act on orders."""

    claim: Claim
    recover: Recover
    poll_delay: timedelta
    """Time for which an order is left to the process that receives its wake-up."""
    clock_tolerance: timedelta
    offers: Mapping[str, Sequence[str]]
    """The agents that offer each capability, the preferred first."""
    version_overlap: timedelta
    """How long the scheduler leaves an order to a newer version of the app (FLT-12)."""
    agent_health: Sequence[AgentHealth] = ()
    """Recent health reports of the agents."""

    def reopen(self, capability: str | None, now: datetime) -> list[datetime]:
        """Return when the closed agents of a capability make calls again, the earliest first."""
        times = (
            closed_until(self.agent_health, agent, now)
            for agent in self.offers.get(capability or "", ())
        )
        return sorted(time for time in times if time)

    def claimed(self, order: OrderAggregate, at: datetime) -> Decision:
        """Return the claim at this time as if every agent had room.

        Whether an agent has room is known only at the moment of the claim.
        """

        def open_of(agents: Sequence[str]) -> list[str]:
            return [agent for agent in agents if not closed_until(self.agent_health, agent, at)]

        capacity = {capability: open_of(agents) for capability, agents in self.offers.items()}
        return self.claim(order, at, capacity)

    def recovered(self, order: OrderAggregate, at: datetime) -> Decision:
        """Return the recovery at this time if nobody replies before."""
        return self.recover(order, at, self.agent_health)


@dataclass(frozen=True, kw_only=True, slots=True)
class Prospect:
    """The next act on an order: by whom, from when on, and with which change, if known."""

    actor: Actor
    at: datetime | None = None
    transition: Transition | None = None
    circuits_open: bool = False
    """Whether no agent makes the call that the order needs before `at`."""
    why_not: NotClaimable | None = None
    """Why the order is not claimed before `at`; None if only room at an agent may be missing."""


class Explanation(View):
    """The answer to "why is it there?"."""

    order_id: str
    summary: str
    """One sentence."""
    waiting_for: str | None
    """Null for an order that waits for nothing."""
    next_actor: Actor | Literal["submission"] | None
    next_at: datetime | None
    """When the scheduler or supervisor acts, or an agent has to answer; null for an operator."""
    if_nothing_happens: str
    steps: list[StepStateView]
    """The steps that run, have failed, or are next: those on which the order depends now."""


def explain(
    order: OrderAggregate, actions: Sequence[str], rules: ActingRules, now: datetime
) -> Explanation:
    """Return the explanation; `actions` are those that an operator can take."""
    expected = what_comes(order, rules, now)
    waiting_for = _waiting_for(order, expected, actions, rules, now)
    waits = f"; it waits for {waiting_for}" if waiting_for else ""
    state = f"The order is {order.process_state}{_because(order)}"
    return Explanation(
        order_id=order.order_id,
        summary=f"{state}{waits}{_then(expected)}.",
        waiting_for=waiting_for,
        next_actor=expected.actor if expected else None,
        next_at=expected.at if expected else None,
        if_nothing_happens=_otherwise(order, rules, now),
        steps=[step_state_view(step) for step in _current(order)],
    )


def _current(order: OrderAggregate) -> list[Step]:
    if order.is_over:
        return []
    states = (UnderWay, Failed, UndoFailed, NothingToUndo)
    return [step for step in order.steps if isinstance(step.state, states) or step in order.ready]


def unreadable(order_id: str, fault: UnreadableRowError) -> Explanation:
    """Return the explanation of an order that cannot be read."""
    return Explanation(
        order_id=order_id,
        summary=f"The order cannot be read: {fault}.",
        waiting_for=(
            "an operator, who mends the row, or a newer version of the app, which can read it"
        ),
        next_actor=Actor.OPERATOR,
        next_at=None,
        if_nothing_happens=AS_IT_IS,
        steps=[],
    )


def accepted(order_id: str) -> Explanation:
    """Return the explanation of an order that is accepted but not recorded yet."""
    waiting_for = "submission to take it from the queue and record it"
    return Explanation(
        order_id=order_id,
        summary=f"The order is Accepted; it waits for {waiting_for}.",
        waiting_for=waiting_for,
        next_actor="submission",
        next_at=None,
        if_nothing_happens="It stays on the queue; a message that is refused is kept as poison.",
        steps=[],
    )


def what_comes(order: OrderAggregate, rules: ActingRules, now: datetime) -> Prospect | None:
    """Return the next act that is expected; None for an order that has ended and needs none."""
    match order.state:
        case Pending():
            return _claim(order, rules, max(now, order.derived.not_before or now))
        case Processing():
            return _answer_or_recovery(order, rules, now)
    return None if order.is_over else Prospect(actor=Actor.OPERATOR)


def what_comes_otherwise(
    order: OrderAggregate, rules: ActingRules, now: datetime
) -> Prospect | None:
    """Return the act of the scheduler's poll or supervisor's sweep if no message arrives."""
    found = [_recovery(order, rules, now)]
    if order.blocked() is None:
        found.append(_claim(order, rules, max(now, _polled_from(order, rules, now))))
    others = (Actor.AGENT, Actor.OUTSIDE)
    acts = (act for act in found if act and act.at and act.actor not in others)
    return min(acts, key=lambda act: act.at or now, default=None)


def _polled_from(order: OrderAggregate, rules: ActingRules, now: datetime) -> datetime:
    """Return when every process may claim the order: at its chosen time, or after its wake-up.

    A last change far to come is the time of a clock that is ahead: nobody waits for that.
    """
    changed = order.updated_at
    soon = changed + rules.poll_delay if changed < now + rules.poll_delay else now
    return order.derived.not_before or soon


def _claim(order: OrderAggregate, rules: ActingRules, at: datetime) -> Prospect | None:
    """Return the claim at this time, or once an agent that the order needs makes calls again."""
    why_not = None
    for then in (at, *rules.reopen(_capability(order), at)):
        transition = rules.claimed(order, then)
        if isinstance(transition, Transition):
            return Prospect(
                actor=Actor.SCHEDULER, at=then, transition=transition, circuits_open=then > at
            )
        why_not = why_not or (transition.why if isinstance(transition, NotClaimed) else None)
    if order.has_any(UnderWay):
        return _answer_or_recovery(order, rules, at)
    if why_not in (NotClaimable.UNKNOWN_WORKFLOW, NotClaimable.UNKNOWN_PROVIDER):
        return _given_up(order, rules, at, why_not)
    return Prospect(actor=Actor.OPERATOR, why_not=why_not)


def _given_up(
    order: OrderAggregate, rules: ActingRules, now: datetime, why_not: NotClaimable
) -> Prospect:
    """Return what is given up of the order, unless a newer app claims it before (FLT-12)."""
    at = max(now, order.derived.ready_since + rules.version_overlap + INSTANT)
    transition = rules.claimed(order, at)
    if not isinstance(transition, Transition):
        return Prospect(actor=Actor.SCHEDULER, why_not=why_not)
    return Prospect(actor=Actor.SCHEDULER, at=at, transition=transition, why_not=why_not)


def _answer_or_recovery(
    order: OrderAggregate, rules: ActingRules, now: datetime
) -> Prospect | None:
    """Return the next act on an order with running steps that cannot be claimed."""
    if not order.with_deadline():
        return Prospect(actor=Actor.OPERATOR)
    if order.overdue(now, rules.clock_tolerance):
        return _recovery(order, rules, now)
    actor = Actor.AGENT if order.has_any(AtWork) else Actor.OUTSIDE
    return Prospect(actor=actor, at=_first_deadline(order))


def _recovery(order: OrderAggregate, rules: ActingRules, now: datetime) -> Prospect | None:
    """Return the recovery if no running step is answered; None if none falls due."""
    due = _first_deadline(order)
    if due is None:
        return None
    at = max(now, due + rules.clock_tolerance + INSTANT)
    decision = rules.recovered(order, at)
    transition = decision if isinstance(decision, Transition) else None
    return Prospect(actor=Actor.SUPERVISOR, at=at, transition=transition)


def _first_deadline(order: OrderAggregate) -> datetime | None:
    return min((step.state.complete_by for step in order.with_deadline()), default=None)


def _capability(order: OrderAggregate) -> str:
    """Return the capability that the next claim needs."""
    return first_need(order, order.derived.ready_since)


# In words


def _because(order: OrderAggregate) -> str:
    outcome = f" ({order.outcome})" if order.outcome else ""
    back = " and goes back" if order.is_undo and not isinstance(order.state, InError) else ""
    stuck = " and ".join(step.name for step in order.in_state(UndoFailed))
    is_stuck = stuck and order.outcome is Outcome.UNDO_INCOMPLETE
    because = f"because the undo of {stuck} failed" if is_stuck else "because"
    why = f", {because}: {words_of(order.cause)}" if order.cause else ""
    hold = _on_hold(order.hold) if order.hold else ""
    return f"{outcome}{back}{why}{hold}{_no_way_back(order)}{_left_out(order)}"


def _no_way_back(order: OrderAggregate) -> str:
    passed = " and ".join(step.name for step in order.passed_pivots())
    return f"; past its point of no return ({passed})" if passed else ""


def _left_out(order: OrderAggregate) -> str:
    """Return which steps the order went on without, and why, as far as it is known."""
    reasons = [
        f"{step.name} was skipped: {words_of(step.state.cause)}"
        for step in order.in_state(Skipped)
        if step.state.cause
    ]
    return f"; {'; '.join(reasons)}" if reasons else ""


def _on_hold(hold: Hold) -> str:
    return f"; {hold.by} holds it since {_clock(hold.since)}, because: {hold.note}"


def _waiting_for(
    order: OrderAggregate,
    expected: Prospect | None,
    actions: Sequence[str],
    rules: ActingRules,
    now: datetime,
) -> str | None:
    if expected is None:
        return None
    answers = " and ".join(
        _answer(order.order_id, step, rules) for step in order.in_state(UnderWay)
    )
    match expected.actor:
        case Actor.AGENT | Actor.OUTSIDE:
            return answers
        case Actor.SCHEDULER if expected.why_not:
            return f"a newer version of the app: {_unknown(order, expected.why_not)}"
        case Actor.SCHEDULER:
            beside = f", and for {answers}" if answers else ""
            wait = _capacity_wait(order, expected, rules, now)
            return (
                f"a scheduler to claim it{wait}{_polled_again(order)}{_pauses(order, now)}{beside}"
            )
        case Actor.SUPERVISOR:
            return f"the supervisor, which has to look at {answers} that did not come in time"
        case Actor.OPERATOR:
            nobody = f"an agent for {_capability(order)}, which none of this app's agents is"
            is_alone = expected.why_not in (
                NotClaimable.NO_CAPACITY,
                NotClaimable.NO_CAPACITY_AT_ITS_OWN,
            )
            return nobody if is_alone else f"an operator, who can {' or '.join(actions)} it"


def _unknown(order: OrderAggregate, why_not: NotClaimable) -> str:
    """Return what only another version of the app knows, which the order needs."""
    if why_not is NotClaimable.UNKNOWN_PROVIDER:
        return "no agent of this one leads to the provider that may have done its step"
    workflow = f"{order.workflow} version {order.workflow_version}"
    return f"this one does not know workflow {workflow}"


def _polled_again(order: OrderAggregate) -> str:
    """Return what was accepted and is asked for again; empty if nothing was."""
    accepted = [
        f"{step.agent}, which accepted {step.name} and may take until {_clock(step.answer_by)}"
        for step in order.ready
        if step.answer_by
    ]
    return f", to ask again {' and '.join(accepted)}" if accepted else ""


_UNTIL: Mapping[type[Wait | None], str] = {
    Delayed: "is delayed until",
    BackingOff: "backs off until",
    CoolingDown: "cools down until",
    Scheduled: "is scheduled for",
    LateEffectsPossible: "may still take effect, so its undo starts from",
}
"""What a step does that waits for a time; `_polled_again` says it of work that was accepted."""


def _pauses(order: OrderAggregate, now: datetime) -> str:
    """Return why the steps that are next do not start yet."""
    return "".join(f"; {pause}" for step in order.ready if (pause := _pause(step, now)))


def _pause(step: Step, now: datetime) -> str:
    does, until = _UNTIL.get(type(step.wait)), step.not_before
    if not does or until is None or until <= now:
        return ""
    why = f" ({words_of(step.cause)})" if step.cause else ""
    return f"{step.name} {does} {_clock(until)}{why}"


def _capacity_wait(
    order: OrderAggregate, expected: Prospect, rules: ActingRules, now: datetime
) -> str:
    needs, since = _capability(order), order.derived.ready_since
    if needs not in rules.offers:
        return ""
    if expected.circuits_open:
        at = max(now, order.derived.not_before or now)
        why = closed_in_words(rules.agent_health, rules.offers[needs], at)
        return f", once an agent for {needs} makes calls again ({why})"
    if now > _polled_from(order, rules, now):
        loads = "; ".join(
            load_in_words(rules.agent_health, agent, now) for agent in rules.offers[needs]
        )
        waits = f", for which it waits since {_clock(since)} ({loads})"
        return f", once an agent for {needs} has room{waits}"
    return f", once an agent for {needs} has room"


def _answer(order_id: str, step: Step, rules: ActingRules) -> str:
    """Return the expected answer, and the fault that its agent has reported of this attempt."""
    title, counts = step.rules.title, step.counts
    called = f"{step.name} ({title})" if title else step.name
    if isinstance(step.state, AwaitingExternalEvent):
        attempt = f"time {counts.failures + 1} of {step.rules.threshold} that it is asked"
        return f"an answer from outside to {called}, {attempt}"
    what, action = ("undo", "undo") if isinstance(step.state, Undoing) else ("step", "do")
    request = request_id(order_id, step.name, counts.attempts, action)
    fault = fault_of(rules.agent_health, request)
    so_far = f" (so far: {fault.text})" if fault and fault.text else ""
    return f"agent {step.agent}'s answer to {what} {called}, attempt {counts.attempts}{so_far}"


def _then(expected: Prospect | None) -> str:
    """Return when the next act comes, and its effect."""
    if expected is None:
        return "; it has ended, and nobody has anything to do"
    if expected.at is None:
        return ""
    if expected.actor in (Actor.AGENT, Actor.OUTSIDE):
        return f", until {_clock(expected.at)}"
    effect = f": {_effect(expected.transition)}" if expected.transition else ""
    return f", from {_clock(expected.at)} on{effect}"


def _otherwise(order: OrderAggregate, rules: ActingRules, now: datetime) -> str:
    comes = what_comes_otherwise(order, rules, now)
    if comes is None or comes.at is None:
        return AS_IT_IS
    who = "the supervisor's sweep" if comes.actor is Actor.SUPERVISOR else "the scheduler's poll"
    effect = f": {_effect(comes.transition)}" if comes.transition else ""
    return f"From {_clock(comes.at)} on {who} finds it{effect}."


def _effect(transition: Transition) -> str:
    """Return the effect of a change: its history entry, and the new state of the order."""
    return ", and ".join(filter(None, (transition.entry.detail, _becomes(transition))))


def _becomes(transition: Transition) -> str:
    before, after = transition.before or transition.after, transition.after
    if isinstance(after.state, InError):
        return f"the order ends in Error ({after.state.outcome})"
    if after.is_undo and not before.is_undo:
        return "the whole order is undone"
    if isinstance(after.state, Pending):
        return "another try is asked for"
    return f"the order is {after.process_state}"


def _clock(time: datetime) -> str:
    return clock(time)
