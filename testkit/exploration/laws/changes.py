"""Laws about what a change of an order may do, and must record."""

from typing import Any

from engine.decisions.transitions import Transition
from engine.declarations.workflow import Workflows
from engine.domain.events import (
    ExternalEventRecorded,
    OrderEnded,
    OrderProcessed,
    StepCompleted,
    StepSettled,
    StepStarted,
    StepUndone,
)
from engine.domain.history import name_of
from engine.domain.orders import InError, OrderAggregate
from engine.domain.states import (
    AwaitingExternalEvent,
    Completed,
    Running,
    SettledStep,
    State,
    UnderWay,
    Undone,
)
from engine.domain.steps import Step
from testkit.exploration.driving import Handler, PortCall
from testkit.exploration.laws.facts import (
    CUSTOMER,
    OPEN,
    attempts_begun,
    failed_steps,
    goes_back,
    has_begun,
    has_expired,
    is_pause,
    leaves_error,
    names_of,
)
from testkit.exploration.laws.registry import COMMIT, DECISION, READ, WRITE, law
from testkit.exploration.turns import ready
from testkit.exploration.violations import demand
from testkit.exploration.world import World


@law("SCH-2", "SUP-4", at=WRITE)
def written_over_the_version_that_was_read(world: World, transition: Transition) -> None:
    """No write replaces an order or a version that its writer has not read."""
    stored = world.order()
    if transition.before is None or stored is None:
        demand(stored is None, "a new order replaced a recorded order")
        return
    demand(
        transition.before.version == stored.version,
        "a write replaced a version that its writer had not read",
    )


@law("SCH-12", at=COMMIT)
def nothing_begun_after_a_failure(_: World, transition: Transition) -> None:
    """After a step has failed, no other step starts."""
    being_done = [
        *transition.after.in_state(Running),
        *transition.after.in_state(AwaitingExternalEvent),
    ]
    begun = [step.name for step in being_done if has_begun(transition, step)]
    demand(
        not (begun and failed_steps(transition.after)),
        f"{begun} started although another step has failed (SCH-12)",
    )


@law("SCH-9", at=COMMIT)
def nothing_done_again(_: World, transition: Transition) -> None:
    """A completed step is never done again. It can only be undone."""
    open_now = {step.name for step in transition.after.steps if isinstance(step.state, OPEN)}
    again = names_of(transition.before.in_state(Completed)) & open_now
    demand(not again, f"{again} was completed, but will be done again (SCH-9)")


@law("FLT-12", at=COMMIT)
def by_one_who_knows_it(world: World, transition: Transition) -> None:
    """A scheduler does not change orders with workflows or providers newer than it knows."""
    role, _, slot = transition.entry.actor.partition("/")
    if role != "scheduler":
        return
    demand(
        not _is_newer(transition.before, world.deployed.known_to(slot)),
        f"{slot} changed an order whose workflow it does not know",
    )
    given_up = [step for step in failed_steps(transition.after) if step.key and step.key.provider]
    of_others = [step.name for step in given_up if not world.deployed.has_agent(slot, step.agent)]
    demand(not of_others, f"{slot} failed {of_others}, whose provider it does not know (FLT-12)")


def _is_newer(order: OrderAggregate, known: Workflows) -> bool:
    versions = [workflow.version for workflow in known.all if workflow.name == order.workflow]
    return order.workflow_version > max(versions, default=0)


@law("SCH-8", "SUB-8", at=COMMIT)
def out_of_error_by_people(_: World, transition: Transition) -> None:
    """A failed order stays failed until an operator acts, or its customer cancels it."""
    actor = transition.entry.actor
    by_people = actor.startswith("operator/") or actor == CUSTOMER
    demand(
        by_people or not leaves_error(transition),
        f"{actor} moved the order out of Error, which only people may do",
    )


@law("SCH-2", at=COMMIT)
def comes_to_something(_: World, transition: Transition) -> None:
    """A claim starts something or ends the order."""
    if transition.entry.event in {"claimed", "step-started"}:
        ran = transition.before.in_state(UnderWay)
        begun = [step for step in transition.after.in_state(UnderWay) if step not in ran]
        demand(begun, f"“{transition.entry.event}”, but no step has started")


@law("OPR-1", at=COMMIT)
def tells_what_changed(_: World, transition: Transition) -> None:
    """The history records each attempt that starts, each step done or undone, and each end."""
    before, after = transition.before, transition.after
    running = after.in_state(UnderWay)
    begun = {step.name for step in running if attempts_begun(transition, step.name) > 0}
    done, undone = names_of(_newly(Completed, transition)), names_of(_newly(Undone, transition))
    done_events = StepCompleted | ExternalEventRecorded | StepSettled
    expected: dict[Any, set[str]] = {StepStarted: begun, done_events: done, StepUndone: undone}
    happened: tuple[Any, ...] = tuple(transition.entry.events)
    for kind, names in expected.items():
        recorded_events = {event.step for event in happened if isinstance(event, kind)}
        demand(
            recorded_events >= names,
            f"{kind} of {names}, but the history has {recorded_events}",
        )
    ended = after.has_ended and type(after.state) is not type(before.state)
    ends = [
        name_of(event)
        for event in transition.entry.events
        if isinstance(event, OrderProcessed | OrderEnded)
    ]
    how = [_end_of(after)] if ended else []
    demand(ends == how, f"the order ended as {how}, but the history has {ends}")


def _newly(state: type[State], transition: Transition) -> list[Step]:
    """Return the steps that have just reached the state."""
    was = names_of(transition.before.in_state(state))
    return [step for step in transition.after.in_state(state) if step.name not in was]


def _end_of(order: OrderAggregate) -> str:
    return order.state.outcome if isinstance(order.state, InError) else "processed"


@law("SCH-11", at=COMMIT)
def keeps_its_place(world: World, transition: Transition) -> None:
    """An order goes to the end of its queue only after progress, or after an operator's action."""
    before, after, now = transition.before, transition.after, transition.entry.at
    settled = _settled(before) != _settled(after)
    turned = before.direction is not after.direction
    released = before.hold and not after.hold
    resumed = before.has_ended and not after.has_ended
    anew = settled or turned or released or resumed
    pauses = is_pause(after, ready(after, world.deployed.workflows))
    until = None if pauses else after.derived.not_before
    place = until or (now if anew else min(before.derived.ready_since, now))
    demand(
        after.derived.ready_since == place,
        f"“{transition.entry.event}”: ready since {after.derived.ready_since}, expected {place}",
    )


def _settled(order: OrderAggregate) -> set[str]:
    return names_of(order.in_state(SettledStep))


@law("SUP-6", at=DECISION)
def supervisor_undoes_nothing(_: World, handler: Handler, transition: Transition) -> None:
    """A supervisor undoes no order. It leaves this to a scheduler."""
    if handler.job.kind != "sweep" or transition.before is None:
        return
    was, now = transition.before.direction, transition.after.direction
    over = names_of(
        step for step in transition.before.in_state(UnderWay) if has_expired(transition, step)
    )
    known = names_of(filter(goes_back, transition.before.steps))
    begun = names_of(filter(goes_back, transition.after.steps)) - known - over
    demand(was is now and not begun, f"the supervisor started an undo: {now} {begun} (SUP-6)")


@law("SUP-5", at=READ)
def sweeps_with_the_lease(world: World, handler: Handler, effect: PortCall) -> None:
    """A supervisor has the lease when it reads a page of overdue orders.

    The lease does not protect later writes.
    """
    if handler.job.kind == "sweep" and effect.name == "work_items":
        held = world.lease is not None and world.lease[0] == handler.slot
        demand(held, f"{handler.slot} reads overdue orders without the lease (SUP-5)")
