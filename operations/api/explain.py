"""Explains an order (OPR-2): what it waits for, who acts next and when, and what happens otherwise.

The facts come from `operations.api.prospects`. This module puts them into words.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal

from engine.decisions.drafts import is_to_be_undone
from engine.decisions.transitions import Transition
from engine.domain.deadlines import WhenLate
from engine.domain.errors import UnreadableRowError
from engine.domain.messages import request_id
from engine.domain.orders import InError, OrderAggregate, Pending
from engine.domain.states import (
    AwaitingExternalEvent,
    Failed,
    NothingToUndo,
    Skipped,
    UnderWay,
    UndoFailed,
    Undoing,
)
from engine.domain.statuses import NotClaimable, Outcome
from engine.domain.steps import Step
from engine.http.models import View
from engine.storage.agent_health import fault_of
from engine.words.catalogue import text, texts
from engine.words.causes import words_of
from engine.words.errors import words_of_error
from engine.words.history import in_words
from engine.words.values import all_of, clock, one_of
from operations.api.agents import closed_in_words, load_in_words
from operations.api.prospects import (
    ActingRules,
    Actor,
    Prospect,
    capability_of,
    polled_from,
    what_comes,
    what_comes_otherwise,
)
from operations.api.views import StepStateView, step_state_view


class Explanation(View):
    """Why an order is in its state, and what comes next."""

    order_id: str
    summary: str
    """The order's state, the reason, and what comes next, in a few sentences."""
    waiting_for: str | None
    """Null if the order waits for nothing."""
    next_actor: Actor | Literal["submission"] | None
    next_at: datetime | None
    """When the scheduler or supervisor acts, or an agent has to answer; null for an operator."""
    if_nothing_happens: str
    steps: list[StepStateView]
    """The steps on which the order depends now: those that run, have failed, or are next."""


def explain(
    order: OrderAggregate, actions: Sequence[str], rules: ActingRules, now: datetime
) -> Explanation:
    """Explain the order. `actions` are the actions that an operator can take."""
    expected = what_comes(order, rules, now)
    waiting_for = _waiting_for(order, expected, actions, rules, now)
    return Explanation(
        order_id=order.order_id,
        summary=text(
            "explain.summary",
            state=text(f"state.{order.process_state}"),
            because=_because(order),
            waits=text("explain.waits", waiting_for=waiting_for) if waiting_for else "",
            then=_then(expected),
        ),
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
    """Explain an order that cannot be read."""
    return Explanation(
        order_id=order_id,
        summary=text("explain.unreadable", fault=words_of_error(fault)),
        waiting_for=text("explain.unreadable.waiting-for"),
        next_actor=Actor.OPERATOR,
        next_at=None,
        if_nothing_happens=text("explain.stays"),
        steps=[],
    )


def accepted(order_id: str) -> Explanation:
    """Explain an order that is accepted but not recorded yet."""
    waiting_for = text("explain.accepted.waiting-for")
    return Explanation(
        order_id=order_id,
        summary=text("explain.accepted", waiting_for=waiting_for),
        waiting_for=waiting_for,
        next_actor="submission",
        next_at=None,
        if_nothing_happens=text("explain.accepted.otherwise"),
        steps=[],
    )


# Why it is where it is


def _because(order: OrderAggregate) -> str:
    outcome = text("explain.outcome", outcome=_outcome(order.outcome)) if order.outcome else ""
    goes_back = order.is_undo and not isinstance(order.state, InError)
    back = text("explain.goes-back") if goes_back else ""
    hold, no_way_back = _on_hold(order), _no_way_back(order)
    due, left_out = _due(order), _left_out(order)
    return "".join((outcome, back, _cause(order), hold, no_way_back, due, *left_out))


def _outcome(outcome: Outcome) -> str:
    return text(f"outcome.{outcome}")


def _cause(order: OrderAggregate) -> str:
    if order.cause is None:
        return ""
    stuck = all_of([step.name for step in order.in_state(UndoFailed)])
    is_stuck = stuck and order.outcome is Outcome.UNDO_INCOMPLETE
    key = "explain.because.undo" if is_stuck else "explain.because"
    return text(key, cause=words_of(order.cause), steps=stuck)


def _on_hold(order: OrderAggregate) -> str:
    if (hold := order.hold) is None:
        return ""
    return text("explain.on-hold", by=hold.by, since=clock(hold.since), note=hold.note)


def _no_way_back(order: OrderAggregate) -> str:
    passed = all_of([step.name for step in order.passed_pivots()])
    return text("explain.no-way-back", steps=passed) if passed else ""


def _due(order: OrderAggregate) -> str:
    """Describe the deadline and what happens at it.

    Empty for an undo, and for an order that has ended.
    """
    deadline = order.deadline
    if deadline is None or order.is_undo or order.has_ended:
        return ""
    stops = deadline.when_late is WhenLate.UNDO and order.passed_pivots()
    rule = WhenLate.STOP if stops else deadline.when_late
    key = rule if deadline.is_ahead else deadline.state
    return text(f"explain.due.{key}", due_by=clock(deadline.due_by))


def _left_out(order: OrderAggregate) -> Iterable[str]:
    """Describe the steps that the order continued without, and why, as far as this is known."""
    return (
        text("explain.left-out", step=step.name, cause=words_of(step.state.cause))
        for step in order.in_state(Skipped)
        if step.state.cause
    )


# What it waits for


def _waiting_for(
    order: OrderAggregate,
    expected: Prospect | None,
    actions: Sequence[str],
    rules: ActingRules,
    now: datetime,
) -> str | None:
    if expected is None:
        return None
    answers = all_of([_answer(order.order_id, step, rules) for step in order.in_state(UnderWay)])
    match expected.actor:
        case Actor.AGENT | Actor.OUTSIDE:
            return answers
        case Actor.SCHEDULER if expected.why_not:
            return _newer_app(order, expected.why_not)
        case Actor.SCHEDULER:
            return text(
                "explain.waits-for.claim",
                capacity=_capacity_wait(order, expected, rules, now),
                again=_polled_again(order),
                pauses=_pauses(order, now),
                beside=text("explain.waits-for.beside", answers=answers) if answers else "",
            )
        case Actor.SUPERVISOR:
            key = "explain.waits-for.supervisor" if answers else "explain.waits-for.deadline"
            return text(key, answers=answers)
        case Actor.OPERATOR:
            return _operator(order, expected, actions)


def _operator(order: OrderAggregate, expected: Prospect, actions: Sequence[str]) -> str:
    no_agent = (NotClaimable.NO_CAPACITY, NotClaimable.NO_CAPACITY_AT_ITS_OWN)
    if expected.why_not in no_agent:
        return text("explain.waits-for.no-agent", capability=capability_of(order))
    return text("explain.waits-for.operator", actions=one_of(actions))


def _newer_app(order: OrderAggregate, why_not: NotClaimable) -> str:
    """Describe what the order needs that only another version of the app knows."""
    return text(
        f"explain.waits-for.{why_not}", workflow=order.workflow, version=order.workflow_version
    )


def _polled_again(order: OrderAggregate) -> str:
    """Describe the deferred work that is requested again. Empty if there is none."""
    accepted = [
        text(
            "explain.polled-again.agent",
            agent=step.agent,
            step=step.name,
            until=clock(step.answer_by),
        )
        for step in order.ready
        if step.answer_by
    ]
    return text("explain.polled-again", agents=all_of(accepted)) if accepted else ""


def _pauses(order: OrderAggregate, now: datetime) -> str:
    """Describe why the next steps do not start yet."""
    return "".join(f"; {pause}" for step in order.ready if (pause := _pause(step, now)))


def _pause(step: Step, now: datetime) -> str:
    """Describe a step that waits for a time. `_polled_again` describes deferred work."""
    key, until = f"explain.pause.{type(step.wait).__name__}", step.not_before
    if key not in texts() or until is None or until <= now:
        return ""
    why = text("explain.pause.cause", cause=words_of(step.cause)) if step.cause else ""
    return text(key, step=step.name, until=clock(until), why=why)


def _capacity_wait(
    order: OrderAggregate, expected: Prospect, rules: ActingRules, now: datetime
) -> str:
    needs, since = capability_of(order), order.derived.ready_since
    if needs not in rules.offers:
        return ""
    given_up = _given_up(order, rules, now)
    if expected.circuits_open:
        at = max(now, order.derived.not_before or now)
        why = closed_in_words(rules.agent_health, rules.offers[needs], at)
        return text("explain.capacity.closed", capability=needs, why=why) + given_up
    if now > polled_from(order, rules, now):
        loads = "; ".join(
            load_in_words(rules.agent_health, agent, now) for agent in rules.offers[needs]
        )
        waited = text("explain.capacity.since", capability=needs, since=clock(since), loads=loads)
        return waited + given_up
    return text("explain.capacity", capability=needs)


def _given_up(order: OrderAggregate, rules: ActingRules, now: datetime) -> str:
    """Describe when the step fails, if all of its agents are silent (SUP-9)."""
    at = rules.given_up_at(order, now)
    return text("explain.capacity.given-up", at=clock(at)) if at else ""


def _answer(order_id: str, step: Step, rules: ActingRules) -> str:
    """Describe the expected answer, and the fault that the agent has reported for this attempt."""
    title, counts = step.rules.title, step.counts
    called = f"{step.name} ({title})" if title else step.name
    if isinstance(step.state, AwaitingExternalEvent):
        time, threshold = counts.failures + 1, step.rules.threshold
        return text("explain.answer.external", step=called, time=time, threshold=threshold)
    action = "undo" if isinstance(step.state, Undoing) else "do"
    request = request_id(order_id, step.name, counts.attempts, action)
    fault = fault_of(rules.agent_health, request)
    so_far = text("explain.answer.so-far", fault=fault.text) if fault and fault.text else ""
    return text(
        f"explain.answer.{action}",
        agent=step.agent,
        step=called,
        attempt=counts.attempts,
        so_far=so_far,
    )


# What comes


def _then(expected: Prospect | None) -> str:
    """Describe when the next act comes, and its effect."""
    if expected is None:
        return text("explain.then.ended")
    if expected.at is None:
        return ""
    if expected.actor in (Actor.AGENT, Actor.OUTSIDE):
        return text("explain.then.until", at=clock(expected.at))
    return text("explain.then.from", at=clock(expected.at), effect=_effect(expected))


def _otherwise(order: OrderAggregate, rules: ActingRules, now: datetime) -> str:
    comes = what_comes_otherwise(order, rules, now)
    if comes is None or comes.at is None:
        return text("explain.stays")
    who = Actor.SUPERVISOR if comes.actor is Actor.SUPERVISOR else Actor.SCHEDULER
    return text(f"explain.otherwise.{who}", at=clock(comes.at), effect=_effect(comes))


def _effect(prospect: Prospect) -> str:
    """Describe the effect of a change: its history entry, and the new state of the order."""
    if prospect.transition is None:
        return ""
    detail, becomes = in_words(prospect.transition.entry.events), _becomes(prospect.transition)
    return text(
        "explain.effect" if detail else "explain.effect.state", detail=detail, becomes=becomes
    )


def _becomes(transition: Transition) -> str:
    before, after = transition.before or transition.after, transition.after
    if isinstance(after.state, InError):
        return text("explain.becomes.error", outcome=_outcome(after.state.outcome))
    is_late_undo = after.is_late and is_to_be_undone(after)
    if (after.is_undo and not before.is_undo) or is_late_undo:
        return text("explain.becomes.undo")
    if after.steps == before.steps and type(after.state) is type(before.state):
        return text("explain.becomes.unchanged")
    if isinstance(after.state, Pending):
        return text("explain.becomes.again")
    return text("explain.becomes.state", state=text(f"state.{after.process_state}"))
