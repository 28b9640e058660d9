"""Laws about the counting of failures, and about the undos that follow."""

from collections.abc import Sequence
from typing import Any

from engine.decisions.transitions import Transition
from engine.domain.causes import Code
from engine.domain.effects import Doubt
from engine.domain.events import (
    AttemptExpired,
    OrderEnded,
)
from engine.domain.messages import request_id_of
from engine.domain.states import (
    AtWork,
    Completed,
    Deferred,
    Skipped,
    UnderWay,
)
from engine.domain.steps import Step, StepIn
from engine.domain.submitted_order import OnFailure
from engine.storage.agent_health import AgentHealth
from testkit.exploration.driving import Handler
from testkit.exploration.laws.facts import (
    OPEN,
    expiries_of,
    failed_steps,
    goes_back,
    has_expired,
    health_in,
    leaves_error,
    names_of,
    passed_pivots,
)
from testkit.exploration.laws.registry import COMMIT, DECISION, law
from testkit.exploration.turns import BEING_DONE, FAILED, NOT_STARTED, is_late
from testkit.exploration.violations import demand
from testkit.exploration.world import World


@law("SUP-3", at=COMMIT)
def failures_counted_once(_: World, transition: Transition) -> None:
    """Steps that expire at the same time count as one failure, until an action resets the count."""
    before, after = transition.before.failures, transition.after.failures
    if transition.entry.event in {"resubmitted", "skipped", "retried-with-new-key", "settled"}:
        demand(after == 0, f"FailureCount {after} of an order that was {transition.entry.event}")
    else:
        most = transition.entry.actor.startswith("supervisor/")
        demand(0 <= after - before <= most, f"FailureCount {before}, then {after}")


@law("SUP-3", "SUP-4", at=COMMIT)
def counted_by_the_rules(_: World, transition: Transition) -> None:
    """Each expiry of a step counts once, until an action resets the count.

    So does each spared attempt. At the threshold, the step gets a cooldown or fails.
    """
    for step in transition.after.steps:
        _is_counted_by_the_rules(transition, step)


def _is_counted_by_the_rules(transition: Transition, after: Step) -> None:
    before = transition.before.step(after.name)
    charged = has_expired(transition, before) and expiries_of(after) > expiries_of(before)
    ended = isinstance(after.state, FAILED | Skipped | Completed)
    again = (isinstance(before.state, FAILED) and not ended) or _goes_on_anew(transition, before)
    mended = again and transition.entry.actor.startswith("operator/")
    afresh = mended or (goes_back(after) and not goes_back(before))
    expiries = 0 if afresh else expiries_of(before) + bool(charged)
    if not charged and after.counts.cooldowns > before.counts.cooldowns:  # nobody began it (SUP-9)
        expiries = after.rules.threshold * (before.counts.cooldowns + 1)
    demand(
        expiries_of(after) == expiries,
        f"{after.name} has counted {expiries_of(after)} expiries: expected {expiries}",
    )
    spared = 0 if afresh else before.counts.overloaded + _is_spared(transition, after)
    demand(
        after.counts.overloaded == spared,
        f"{after.name} was spared {spared} times, but has counted {after.counts.overloaded}",
    )
    may_be_done = isinstance(after.state, OPEN) and not transition.after.is_undo
    full = after.counts.failures >= after.rules.threshold
    demand(
        not (full and (goes_back(after) or may_be_done)),
        f"{after.name} is {after.state} after {after.counts.failures} failures",
    )
    demand(
        after.counts.cooldowns <= after.rules.max_cooldowns,
        f"{after.name} has {after.counts.cooldowns} cooldowns, more than allowed",
    )


def _is_spared(transition: Transition, step: Step) -> bool:
    """Whether the history says that an attempt was spared because its agent was overloaded."""
    expired = [event for event in transition.entry.events if isinstance(event, AttemptExpired)]
    return any(event.step == step.name and event.is_overloaded for event in expired)


def _goes_on_anew(transition: Transition, before: Step) -> bool:
    """Whether an order continues from Error with a step that has not failed, as if it were new.

    The step waited for an external event (SCH-12), or the deadline interrupted it (SCH-17).
    """
    interrupts = transition.entry.event == "resubmitted" and is_late(transition.before)
    is_interrupted = interrupts and not isinstance(before.state, Deferred)
    waited = isinstance(before.state, NOT_STARTED) and (before.is_external or is_interrupted)
    return leaves_error(transition) and not transition.after.is_undo and waited


@law("SUP-3", "UND-2", at=COMMIT)
def in_doubt_once_expired(_: World, transition: Transition) -> None:
    """A step is in doubt after its attempt at a service expired, whether or not it counts."""
    for before in transition.before.in_state(AtWork):
        after = transition.after.step(before.name)
        demand(
            not has_expired(transition, before) or isinstance(after.effect, Doubt),
            f"{after.name} has expired, but is not in doubt: {after.effect} (SUP-3)",
        )


@law("SUP-3", "AGT-8", at=DECISION)
def charged_if_begun(_: World, handler: Handler, transition: Transition) -> None:
    """An attempt counts exactly if an agent has begun it. A first attempt also needs a fault.

    The reply to a first attempt may still wait for a scheduler. The first few attempts that time
    out are spared if the agent's calls time out for several orders.
    """
    if handler.job.kind != "sweep" or transition.before is None:
        return
    reports = [row for answer in handler.log for row in health_in(answer)]
    reported = {request for row in reports for request in row.begun}
    faults = [fault for row in reports for fault in row.faults]
    at_fault = {request for fault in faults for request in fault.requests}
    over = [step for step in transition.before.in_state(UnderWay) if has_expired(transition, step)]
    order_id = transition.before.order_id

    def counts(step: Step) -> bool:
        request = request_id_of(order_id, step)
        is_reported = request in reported and (step.counts.attempts > 1 or request in at_fault)
        return is_reported and not _may_be_spared(order_id, step, reports)

    expired = {step.name: step.is_external or counts(step) for step in over}
    counted = transition.after.failures - transition.before.failures
    demand(
        counted == any(expired.values()),
        f"{counted} failures counted, expected by step: {expired} (SUP-3)",
    )
    for name, due in expired.items():
        before, after = transition.before.step(name), transition.after.step(name)
        taken_back = transition.after.is_undo and isinstance(before.state, BEING_DONE)
        charged = expiries_of(after) > expiries_of(before)
        demand(
            taken_back or charged == due,
            f"a failure of {name} counted: {charged}, expected: {due} (SUP-3)",
        )


MOST_SPARED = 3
"""How many attempts of a step are spared until an action resets the count."""
CROWD = 3
"""The least number of orders whose calls time out on an overloaded agent."""


def _may_be_spared(order_id: str, step: Step, reports: Sequence[AgentHealth]) -> bool:
    """Whether the attempt timed out, together with attempts of other orders."""
    timed_out = {
        request: at
        for row in reports
        for fault in row.faults
        for request, at in zip(fault.requests, fault.timed_out_at or (), strict=False)
    }
    own = timed_out.get(request_id_of(order_id, step))
    if own is None or step.counts.overloaded >= MOST_SPARED:
        return False
    near = {name for name, at in timed_out.items() if abs(at - own) <= step.rules.timeout}
    return len({name.partition(":")[0] for name in near}) >= CROWD


@law("SUP-3", at=DECISION)
def undone_for_its_own_fault(_: World, handler: Handler, transition: Transition) -> None:
    """A fault of a step's own service requests its undo. Other faults do not.

    An operator handles requests that a gateway rejected, whatever happens to other requests.
    """
    if handler.job.kind != "sweep" or transition.before is None:
        return
    faults = [fault for answer in handler.log for row in health_in(answer) for fault in row.faults]
    by_gateway = {request for fault in faults if fault.by_gateway for request in fault.requests}
    over = [step for step in transition.before.in_state(AtWork) if has_expired(transition, step)]
    turned_away = {
        step.name for step in over if request_id_of(transition.before.order_id, step) in by_gateway
    }
    failed = [
        step
        for step in failed_steps(transition.after)
        if step.name in names_of(over)
        and step.rules.on_failure is OnFailure.UNDO
        and step.state.cause.code is not Code.NO_AGENT_BEGAN  # SUP-9
    ]
    blamed = names_of(failed) & turned_away - names_of(filter(_is_for_operator, failed))
    demand(not blamed, f"a gateway rejected {blamed}, but the order is undone for it (SUP-3)")
    asks = names_of(failed) - turned_away
    ended = [event for event in transition.entry.events if isinstance(event, OrderEnded)]
    stays = ended and not passed_pivots(transition.after)
    demand(
        not (asks and stays), f"{asks} failed at its service, but the order is not undone (SUP-3)"
    )


def _is_for_operator(step: StepIn[Any]) -> bool:
    return bool(step.state.operator_decides)
