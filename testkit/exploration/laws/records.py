"""Laws about the records of one order."""

from datetime import datetime

from engine.decisions import operator_actions as actions
from engine.decisions.requests import results_for
from engine.decisions.transitions import HistoryEntry
from engine.declarations.workflow import StepDefinition
from engine.domain import orders
from engine.domain.effects import Doubt
from engine.domain.events import (
    Claimed,
    CooldownStarted,
    ExternalEventRecorded,
    OptionalStepFailed,
    SkippedByCondition,
    StepStarted,
)
from engine.domain.keys import history_key
from engine.domain.orders import InError, OrderAggregate, Pending, Processing
from engine.domain.states import (
    AtWork,
    AwaitingExternalEvent,
    Completed,
    Failed,
    Running,
    Skipped,
    UnderWay,
    Undoing,
)
from engine.domain.statuses import Outcome
from testkit.exploration.driving import Job
from testkit.exploration.laws.facts import (
    CUSTOMER,
    OVER_LINK,
    has_ended,
    passed_pivots,
    steps_to_try,
    waits_for_operator,
)
from testkit.exploration.laws.notifications import (
    stands,
)
from testkit.exploration.laws.registry import END, RECORDS, UNRECORDED, law
from testkit.exploration.turns import is_late, next_check, stops
from testkit.exploration.violations import demand
from testkit.exploration.world import Sent, World

GIVES_BACK = {"recovered", "requeued", "waits"}
ENDS = {"processed", "failed", "undone", "undo-incomplete", "undo-requested"}
"""A claim may end the order immediately, so these events may also occur while nobody has it."""


@law("SUB-1", at=UNRECORDED)
def accepted_order_is_not_lost(world: World) -> None:
    """The submission of an accepted order is on its way, or kept as poison."""
    begun = (handler.job for handler in world.handlers.values())
    on_its_way: tuple[Sent | Job, ...] = (*world.queue, *begun, *world.to_come)
    submitted = [message.body for message in on_its_way if message.kind == "submission"]
    here = any(world.order_id in body for body in submitted)
    demand(here or world.poison, "the order was accepted, but is lost")


@law("OPR-1", at=RECORDS)
def numbered_without_gaps(world: World, order: OrderAggregate) -> None:
    """Each version has one history row, and there are no other rows."""
    for version in range(1, order.version + 1):
        demand(
            history_key(world.order_id, version) in world.rows, f"version {version} has no history"
        )
    beyond = history_key(world.order_id, order.version + 1)
    demand(beyond not in world.rows, "the history has a version that the state has not reached")


@law("SCH-2", "ANS-1", at=RECORDS)
def handled_by_one(world: World, order: OrderAggregate) -> None:
    """A claim and its end alternate.

    `LockedBy` names the scheduler that handles the order, and is empty if there is none.
    """
    waits = any(step.is_external for step in order.steps)
    held: bool | None = False
    for entry in world.history():
        held = True if _claims_and_gives_back(entry) else held
        if held is not None and (entry.event == "claimed" or entry.event in GIVES_BACK):
            whose = "a scheduler" if held else "nobody"
            demand(
                held == (entry.event != "claimed"),
                f"“{entry.event}” while {whose} had claimed the order",
            )
        if entry.event == "claimed" or entry.event in GIVES_BACK | ENDS:
            held = entry.event == "claimed"
        elif (waits and _is_of_people(entry)) or entry.actor == OVER_LINK:
            held = None  # nobody holds what only waited for an answer: it may be given back
    handler = order.state.instance if isinstance(order.state, Processing) else None
    is_handled = handler is not None
    demand(held in (None, is_handled), f"the order is {order.state}, but claimed: {held}")
    locked, working = order.derived.locked_by, order.has_any(AtWork)
    demand(
        locked == (handler if working else None),
        f"the order is {order.state}, agents work: {working}, but LockedBy is {locked}",
    )


def _claims_and_gives_back(entry: HistoryEntry) -> bool:
    """Whether one claim takes the order, ends a step, and releases the order again (SUP-9)."""
    takes = any(isinstance(event, Claimed) for event in entry.events)
    gives_up = any(
        isinstance(event, CooldownStarted | OptionalStepFailed) for event in entry.events
    )
    return takes and gives_up and entry.event in GIVES_BACK


def _is_of_people(entry: HistoryEntry) -> bool:
    return entry.actor.startswith("operator/") or entry.actor == CUSTOMER


@law("SUP-2", "SUP-3", "SCH-12", at=RECORDS)
def shown_as_it_is(_: World, order: OrderAggregate) -> None:
    """The process state and `CompleteBy` follow from the steps."""
    due, complete_by = order.in_state(UnderWay), order.derived.complete_by
    match order.state:
        case Processing():
            demand(due, "the order is Processing, but no step runs")
            first = _in_time(order, min(step.state.complete_by for step in due))
            demand(
                complete_by == first, "CompleteBy is not the earliest complete-by time of the steps"
            )
            back = order.is_undo or stops(order)
            held_up = back and not order.has_any(AtWork)
            demand(not held_up, "the end of the order waits for an external event (SCH-12)")
        case Pending():
            dates = [step.retry_by for step in steps_to_try(order) if step.retry_by]
            demand(
                complete_by == _in_time(order, max(dates, default=None)),
                f"CompleteBy {complete_by} is not the last time of a retry: {dates} (SUP-3)",
            )
        case _:
            demand(
                complete_by is None, f"the order is {order.state}, but has CompleteBy {complete_by}"
            )
            demand(not due, f"a step runs although the order is {order.state}")
    both = order.has_any(Running, AwaitingExternalEvent) and order.has_any(Undoing)
    demand(not both, "a step is being undone while another is being done")


def _in_time(order: OrderAggregate, complete_by: datetime | None) -> datetime | None:
    """Return the time, but not later than a deadline that is ahead (SCH-17)."""
    is_ahead = next_check(order) is not None
    return min(complete_by, order.deadline.due_by) if complete_by and is_ahead else complete_by


@law("OPR-12", at=RECORDS)
def has_a_way_out(world: World, order: OrderAggregate) -> None:
    """An order in `Error` can be cancelled, unless a step certainly passed its pivot.

    If only a doubt prevents this, an operator can settle the step.
    """
    if not isinstance(order.state, InError) or order.is_undo:
        return
    certain = [step for step in passed_pivots(order) if not isinstance(step.effect, Doubt)]
    ways = {"cancel", "settle"} & {*actions.possible(order, world.now)}
    demand(ways or certain, f"the order is in Error, and no action can end its doubt: {ways}")


@law("SUP-4", at=RECORDS)
def attempts_counted_once(world: World, order: OrderAggregate) -> None:
    """If an order has a single step, it has as many attempts as the order has claims."""
    if world.restored:  # what was ever tried is not known any more
        return
    claims = 0
    for entry in world.history():
        begins = any(isinstance(event, StepStarted) for event in entry.events)
        claims += entry.event == "claimed" or (entry.event == "not-attempted" and begins)
    attempts = sum(step.counts.attempts for step in order.steps)
    single = len(order.steps) == 1 and not order.is_undo
    demand(
        not single or attempts == claims,
        f"{attempts} attempts, although the order was claimed {claims} times",
    )


@law("SCH-9", "UND-5", at=RECORDS)
def over_for_good(world: World, _: OrderAggregate) -> None:
    """An order that was processed or undone completely never changes again."""
    transitions = [
        world.rows[history_key(world.order_id, number)][1]
        for number in range(1, world.order().version + 1)
    ]
    over = [entry.event for entry in transitions[:-1] if entry.event in {"processed", "undone"}]
    same = transitions[-1].event in {"erased", "restored"}  # what it did is as before
    demand(same or not over, f"“{transitions[-1].event}” although the order was {over}")


@law("SCH-8", "SCH-12", "UND-5", at=RECORDS)
def ended_as_its_steps_say(world: World, order: OrderAggregate) -> None:
    """The end of an order follows from its steps.

    No step has failed without a consequence.
    """
    steps = {step.name: step.state for step in order.steps}
    standing = [step.name for step in order.steps if stands(step)]
    known = world.deployed.workflows.find(order.workflow, order.workflow_version)
    gone = known is None or world.deployed.known
    if isinstance(order.state, orders.Processed):
        done = all(isinstance(state, Completed | Skipped) for state in steps.values())
        demand(done, f"the order is Processed, but its steps are {steps}")
    if isinstance(order.state, InError):
        holds = {
            Outcome.FAILED: order.has_any(Failed) or gone or is_late(order),
            Outcome.UNDONE: not standing,
            Outcome.UNDO_INCOMPLETE: standing,
        }
        demand(
            holds[order.state.outcome],
            f"the outcome is {order.state.outcome}, but the steps are {steps}",
        )


@law("SCH-14", at=RECORDS)
def evaluated_once(world: World, _: OrderAggregate) -> None:
    """A step that has started is not skipped by its condition later."""
    begun: set[str] = set()
    for event in (event for entry in world.history() for event in entry.events):
        begun |= {event.step} if isinstance(event, StepStarted) else set()
        unneeded = isinstance(event, SkippedByCondition) and event.step in begun
        demand(not unneeded, f"a step that had started was skipped: {event} (SCH-14)")


@law("ANS-3", at=RECORDS)
def answered_once(world: World, _: OrderAggregate) -> None:
    """An external event completes its step once."""
    happened = (event for entry in world.history() for event in entry.events)
    answered = [event.step for event in happened if isinstance(event, ExternalEventRecorded)]
    demand(
        len(answered) == len({*answered}), f"a step was answered more than once: {answered} (ANS-3)"
    )


@law("SCH-15", "SUB-9", at=RECORDS)
def begun_in_time(world: World, order: OrderAggregate) -> None:
    """No step starts before its start time, or before the order's."""
    date = order.submitted.not_before
    workflow = world.deployed.workflows.find(order.workflow, order.workflow_version)
    timed = {step.name: step for step in workflow.steps if step.start_at} if workflow else {}
    for entry in world.history():
        begun = {event.step for event in entry.events if isinstance(event, StepStarted)}
        times = {name: _time_of(order, timed[name]) for name in begun & timed.keys()}
        early = [name for name, time in times.items() if time and entry.at < time]
        demand(not early, f"steps started before their time: {early} (SCH-15)")
        starts = (event for event in entry.events if isinstance(event, StepStarted))
        forward = {start.step for start in starts if not start.is_undo}
        demand(
            not (forward and date and entry.at < date),
            f"steps started before the time of the order: {sorted(forward)} (SUB-9)",
        )


def _time_of(order: OrderAggregate, definition: StepDefinition) -> datetime | None:
    return definition.start_at(order.submitted, results_for(order, definition))


@law("SUB-1", "SUP-3", "ALR-2", at=END)
def has_ended_and_owes_nothing(world: World) -> None:
    """The order has ended or is on hold, and only work that waits for an operator is due."""
    order = world.order()
    if order is None:
        to_come = any(world.order_id in message.body for message in world.to_come)
        demand(world.poison or to_come, "nothing more can happen, but the order is not recorded")
        return
    demand(has_ended(world), f"nothing more can happen, but the order is {order.state}")
    present = [key.split("|")[0] for key in world.work_items()]
    expected = ["!error"] * waits_for_operator(order) + ["!held"] * (order.hold is not None)
    demand(present == expected, f"nothing more can happen, but these rows are still due: {present}")
