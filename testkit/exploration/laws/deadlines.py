"""Laws about the deadline of an order and its consequences (SCH-17, ALR-6)."""

from engine.alerts import events as alerts
from engine.decisions.transitions import Transition
from engine.domain.deadlines import DeadlineState, WhenLate
from engine.domain.events import DeadlinePassed, DueSoon, StepStarted, UndoRequested
from engine.domain.orders import InError, OrderAggregate
from engine.domain.states import Failed
from engine.domain.statuses import Outcome
from testkit.exploration.laws.facts import passed_pivots
from testkit.exploration.laws.registry import COMMIT, RECORDS, law
from testkit.exploration.turns import is_late
from testkit.exploration.violations import demand
from testkit.exploration.world import World


@law("SCH-17", at=RECORDS)
def due_as_submitted(world: World, order: OrderAggregate) -> None:
    """The deadline counts from the submission, or from the start time that the order names."""
    workflow = world.deployed.workflows.find(order.workflow, order.workflow_version)
    if workflow is None or workflow.within is None:
        return
    placed, begins = order.submitted.placed_at, order.submitted.not_before
    due_by = max(placed, begins or placed) + workflow.within
    found = order.deadline and (order.deadline.due_by, order.deadline.when_late)
    expected = (due_by, workflow.when_late)
    demand(found == expected, f"the deadline is {found}: expected {expected} (SCH-17)")


@law("SCH-17", at=COMMIT)
def nothing_begun_when_late(_: World, transition: Transition) -> None:
    """After its deadline an order starts nothing, unless it continues with an alert."""
    deadline = transition.before.deadline
    if deadline is None or deadline.when_late is WhenLate.ALERT:
        return
    if deadline.state is DeadlineState.LIFTED or transition.entry.at < deadline.due_by:
        return
    events = transition.entry.events
    begun = [e.step for e in events if isinstance(e, StepStarted) and not e.is_undo]
    demand(not begun, f"{begun} started after the deadline, {deadline.due_by} (SCH-17)")


@law("SCH-17", "ALR-6", at=RECORDS)
def noticed_once(world: World, order: OrderAggregate) -> None:
    """Each deadline is announced once and noticed once, at its time."""
    deadline = order.deadline
    if deadline is None:
        return
    happened = [(entry.at, event) for entry in world.history() for event in entry.events]
    warned = [at for at, event in happened if isinstance(event, DueSoon)]
    passed = [at for at, event in happened if isinstance(event, DeadlinePassed)]
    most = deadline.due_by + world.deployed.tolerance
    in_time = all(deadline.due_soon_at < at <= most for at in warned)
    demand(len(warned) <= 1 and in_time, f"due {deadline.due_by}, announced at {warned} (ALR-6)")
    is_after = all(deadline.due_by < at for at in passed)
    demand(len(passed) <= 1 and is_after, f"due {deadline.due_by}, passed at {passed} (SCH-17)")
    state = deadline.state
    known = {
        DeadlineState.OPEN: not warned and not passed,
        DeadlineState.WARNED: bool(warned) and not passed,
        DeadlineState.PASSED: bool(passed),
    }
    demand(known.get(state, True), f"{state}: announced at {warned}, passed at {passed} (SCH-17)")


@law("ALR-6", at=COMMIT)
def operators_are_warned(_: World, transition: Transition) -> None:
    """Operators get an event for each warning, and for each late order that continues."""
    events = transition.entry.events
    only_alerts = [
        e for e in events if isinstance(e, DeadlinePassed) and e.when_late is WhenLate.ALERT
    ]
    expected = [alerts.ORDER_DUE_SOON] * sum(isinstance(e, DueSoon) for e in events)
    expected += [alerts.ORDER_LATE] * len(only_alerts)
    kinds = (alerts.ORDER_DUE_SOON, alerts.ORDER_LATE)
    of_deadline = [e.type for e in alerts.of(transition.after, transition.entry) if e.type in kinds]
    demand(of_deadline == expected, f"operators get {of_deadline}: expected {expected}")


@law("SCH-17", "UND-6", at=COMMIT)
def ends_by_its_rule(_: World, transition: Transition) -> None:
    """A late order without failed steps is undone or stops, as its rule says."""
    after = transition.after
    deadline, has_failed = after.deadline, transition.before.has_any(Failed)
    asked = [e for e in transition.entry.events if isinstance(e, UndoRequested) and not e.step]
    may_undo = deadline is not None and deadline.when_late is WhenLate.UNDO
    past = passed_pivots(transition.before)
    demand(
        not asked or (may_undo and is_late(transition.before) and not past),
        f"the order is undone as late: {deadline}, past pivots {past} (SCH-17)",
    )
    stopped = after.state == InError(Outcome.FAILED) and not transition.before.has_ended
    stays = stopped and is_late(after) and not has_failed and not after.has_any(Failed)
    demand(
        not (stays and may_undo and not past),
        "a late order stops: expected its undo (SCH-17)",
    )
