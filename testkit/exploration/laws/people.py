"""Laws about the acts of operators, customers and people outside."""

from datetime import timedelta
from typing import Any

from engine.decisions.operator_actions import ACTIONS
from engine.decisions.transitions import Transition
from engine.domain.events import (
    EarlyRefusalRecorded,
    ExternalEventRecorded,
    StepCompleted,
    StepFailed,
)
from engine.domain.history import names_of_action
from engine.domain.orders import Pending, Processing
from engine.domain.states import (
    AwaitingExternalEvent,
    Completed,
    UnderWay,
)
from engine.domain.steps import Step
from engine.storage.agent_health import pause_of
from testkit.exploration.callbacks import REFUSALS
from testkit.exploration.deployment import CALLS_BACK, CUSTOMER_CANCEL, ERASE, SAYS
from testkit.exploration.driving import Handler
from testkit.exploration.laws.facts import (
    CUSTOMER,
    OPEN,
    attempts_begun,
    attempts_end_by,
    has_begun,
    health_in,
    is_health,
)
from testkit.exploration.laws.registry import ACTED, ANSWERED, COMMIT, DECISION, law
from testkit.exploration.violations import demand
from testkit.exploration.world import World

EVENTS_OF = {
    **{action.name: {*names_of_action(action.name)} for action in ACTIONS},
    CUSTOMER_CANCEL: {"cancelled"},
    ERASE: {"erased"},
}
"""The history events of each act of operators and customers."""


@law("OPR-7", at=COMMIT)
def nothing_begun_while_it_is_held(_: World, transition: Transition) -> None:
    """No attempt starts while an order is on hold."""
    begun = [step.name for step in transition.after.steps if attempts_begun(transition, step.name)]
    demand(
        not (begun and transition.before.hold),
        f"{begun} started although the order is on hold (OPR-7)",
    )


@law("OPR-7", at=COMMIT)
def deadlines_move_by_the_time_held(_: World, transition: Transition) -> None:
    """The deadline of an external event moves by the time on hold, in which no failure counts."""
    hold = transition.before.hold
    if hold is None:
        return
    by = transition.entry.at - hold.since if transition.entry.event == "released" else timedelta()
    for step in transition.before.in_state(AwaitingExternalEvent):
        after, due = transition.after.step(step.name), step.state.complete_by
        moved = min(due + by, attempts_end_by(transition.before) or due + by)
        demand(
            after.complete_by in (None, moved),
            f"the deadline of {step.name} was {due} and is {after.complete_by}: "
            f"expected that it moves by the time on hold, {by} (OPR-7)",
        )
        counted = after.counts.failures - step.counts.failures
        demand(counted <= 0, f"{step.name} counts a failure while the order is on hold (OPR-7)")


@law("OPR-9", at=DECISION)
def nothing_sent_to_a_paused_agent(_: World, handler: Handler, transition: Transition) -> None:
    """A scheduler sends nothing to an agent that was paused at its last refresh."""
    if transition.before is None:
        return
    health = next((health_in(entry) for entry in reversed(handler.log) if is_health(entry)), [])
    begun = [step for step in transition.after.in_state(UnderWay) if has_begun(transition, step)]
    paused = [step.agent for step in begun if pause_of(health, step.agent, transition.entry.at)]
    event = transition.entry.event
    demand(not paused, f"“{event}” sends requests to paused agents: {paused} (OPR-9)")


@law("SUB-8", at=COMMIT)
def cancelled_in_time(world: World, transition: Transition) -> None:
    """A customer can cancel until the step starts that the endpoint names."""
    if transition.entry.actor != CUSTOMER:
        return
    until = world.deployed.endpoint_of(transition.before.workflow).cancel_until
    step = transition.before.step(until)
    demand(not step.counts.attempts, f"a customer cancels although {until} has started (SUB-8)")


@law("ANS-2", "ANS-4", at=COMMIT)
def answered_in_its_time(_: World, transition: Transition) -> None:
    """An answer counts, early or late, until the step was given up, and not afterwards."""
    for step in transition.before.steps:
        _is_answered_in_its_time(transition, step)


def _is_answered_in_its_time(transition: Transition, before: Step) -> None:
    after, was = transition.after.step(before.name), transition.before
    is_done = isinstance(after.state, Completed) and not isinstance(before.state, Completed)
    if not before.is_external or not is_done:
        return
    over = was.has_ended or was.is_undo
    demand(
        isinstance(before.state, OPEN) and not over,
        f"{before.name} was {before.state} in an order that was {was.state}, "
        f"{was.direction}, but is now Completed (ANS-4)",
    )
    requester = transition.entry.actor.partition("/")[0]
    demand(requester == "operator", f"{requester} has completed {before.name} (ANS-1)")


@law("OPR-6", "ANS-3", at=ACTED)
def reported_actions_are_recorded(world: World, handler: Handler) -> None:
    """An act that was reported as done is recorded in the state."""
    if handler.job.kind in (*SAYS, *CALLS_BACK):
        _is_recorded(world, handler)
        return
    acted = [entry for entry in world.history() if entry.actor.startswith(handler.slot)]
    events = {entry.event for entry in acted}
    demand(
        events & EVENTS_OF[handler.job.kind],
        f"{handler.job.kind} was reported as done, but is not recorded (OPR-6)",
    )


def _is_recorded(world: World, handler: Handler) -> None:
    """Check that an answer that was reported as recorded is in the history (ANS-3)."""
    step = world.order().step(handler.job.step)
    recorded_events: Any = ExternalEventRecorded | StepFailed | EarlyRefusalRecorded
    if handler.job.kind in CALLS_BACK:  # its agent may have told it before
        recorded_events |= StepCompleted
    happened = (event for entry in world.history() for event in entry.events)
    recorded = any(
        isinstance(event, recorded_events) and event.step == step.name for event in happened
    )
    demand(
        recorded, f"{handler.job.kind} was reported as recorded, but {step.name} is {step.state}"
    )


@law("ANS-2", at=ANSWERED)
def no_valid_callback_is_refused(world: World, handler: Handler, error: Exception | None) -> None:
    """No answer at a callback URL is refused while the step can still be done.

    After a reset, a step has another callback URL, and the former one is invalid.
    """
    order = world.order()
    step = order.step(handler.job.step) if order else None
    if step is None or error is None or step.callback_token != handler.job.token:
        return
    goes_on = isinstance(order.state, Pending | Processing) and not order.is_undo
    is_open = isinstance(step.state, OPEN)
    refused = isinstance(error, REFUSALS)
    demand(
        not (refused and goes_on and is_open),
        f"an answer to {step.name} is refused although it is {step.state}: {error} (ANS-2)",
    )
