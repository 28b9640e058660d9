"""What must hold in every state of every world (pattern.md, 10)."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from engine.decisions import operator_actions as actions
from engine.decisions.lists import LISTS
from engine.decisions.requests import results_for
from engine.decisions.transitions import HistoryEntry, Note, Transition
from engine.declarations.workflow import StepDefinition, Workflows
from engine.domain import orders
from engine.domain.effects import Doubt
from engine.domain.events import (
    Action,
    ActionTaken,
    AttemptDeferred,
    AttemptExpired,
    EarlyRefusalRecorded,
    ExternalEventRecorded,
    NotAttempted,
    OrderEnded,
    OrderProcessed,
    PersonalDataErased,
    ReplyRefused,
    Restored,
    SkippedByCondition,
    StepActionTaken,
    StepCompleted,
    StepFailed,
    StepSettled,
    StepStarted,
    StepUndone,
    SubmissionRefused,
    UndoRequested,
)
from engine.domain.history import name_of, names_of_action
from engine.domain.keys import history_key, sortable
from engine.domain.messages import (
    OPERATORS,
    AgentReply,
    AgentRequest,
    BusMessage,
    DeferredReply,
    NotAttemptedReply,
    request_id_of,
)
from engine.domain.orders import InError, OrderAggregate, Pending, Processing
from engine.domain.states import (
    AtWork,
    AwaitingExternalEvent,
    BackingOff,
    Completed,
    Failed,
    RequestCancelled,
    Running,
    SettledStep,
    Skipped,
    SkipReason,
    Startable,
    State,
    UnderWay,
    Undoing,
    Undone,
    UndoPending,
)
from engine.domain.statuses import Outcome
from engine.domain.steps import Step, StepIn
from engine.domain.submitted_order import OnFailure
from engine.domain.work_index import IndexRow, WorkItemKind
from engine.storage.agent_health import AgentHealth, pause_of
from testkit.exploration.deployment import CALLS_BACK, CUSTOMER_CANCEL, ERASE, SAYS
from testkit.exploration.driving import Answer, Handler, HealthRows, Job, PortCall, Returned
from testkit.exploration.due import may_go_on
from testkit.exploration.notification_checks import (
    OF_ENDS,
    check_alert,
    check_notices,
    stands,
    unsent,
)
from testkit.exploration.roles import decode, decode_reply
from testkit.exploration.turns import BEING_DONE, FAILED, NOT_STARTED, dependents, ready
from testkit.exploration.violations import demand
from testkit.exploration.world import Sent, World

GIVES_BACK = {"recovered", "requeued", "waits"}
ENDS = {"processed", "failed", "undone", "undo-incomplete", "undo-requested"}
"""A claim may end the order at once, so these may also come while nobody has it."""

OPEN = NOT_STARTED | BEING_DONE
"""The step may still be done."""
ACTED_ON = ("Agents", "NotBefore", "ReadySince", "UpdatedAt", "Workflow", "WorkflowVersion")
NEVER = datetime.min.replace(tzinfo=UTC)
CUSTOMER = "customer"
"""The actor of what a customer asked for."""
OVER_LINK = "outside"
"""The actor of an answer over a link."""

EVENTS_OF = {
    **{action.name: {*names_of_action(action.name)} for action in actions.ACTIONS},
    CUSTOMER_CANCEL: {"cancelled"},
    ERASE: {"erased"},
}
"""What the history says of what operators and customers do."""


def check(world: World) -> None:
    """Check a state: of each order what must hold, whatever becomes of those beside it."""
    for part in world.parts():
        _check(part)


def _check(world: World) -> None:
    order = world.order()
    if order is None:
        _not_lost(world)
        return
    if not world.restored:  # of alerts and notices there is no copy
        _alerted_once(world)
        check_notices(world)
    _nothing_stands_half_done(world, order)
    _one_round_stands(world, order)
    if not world.rows.sound:
        _check_rows(world, order)
        world.rows.sound = True


def _check_rows(world: World, order: OrderAggregate) -> None:
    """Check what follows from the stored rows alone, once for all worlds that share them."""
    _numbered_without_gaps(world, order)
    _handled_by_one(world, order)
    _shown_as_it_is(order)
    _work_index_is_exact(world, order)
    _waits_for_nothing_else(world, order)
    _has_a_way_out(world, order)
    if not world.restored:  # what was ever tried is not known any more
        _attempts_counted_once(world, order)
    _over_for_good(world)
    _ended_as_its_steps_say(world, order)
    _evaluated_once(world)
    _answered_once(world)
    _begun_in_time(world, order)


def _has_a_way_out(world: World, order: OrderAggregate) -> None:
    """An order in `Error` can be cancelled, unless a step certainly passed its pivot (OPR-12).

    Where only a doubt forbids that, an operator can settle it.
    """
    if not isinstance(order.state, InError) or order.is_undo:
        return
    certain = [step for step in _passed_pivots(order) if not isinstance(step.effect, Doubt)]
    ways = {"cancel", "settle"} & {*actions.possible(order, world.now)}
    demand(ways or certain, f"the order is in Error, and nothing can end its doubt: {ways}")


def _passed_pivots(order: OrderAggregate) -> list[Step]:
    """The points of no return that were done, or may have been (UND-6)."""
    return [step for step in order.steps if step.rules.pivot and _may_be_done(step)]


def _may_be_done(step: Step) -> bool:
    match step.state:
        case Running() | Completed() | Skipped(reason=SkipReason.OPERATOR):
            return True
    return isinstance(step.effect, Doubt)


def _ended_as_its_steps_say(world: World, order: OrderAggregate) -> None:
    """An order has ended as its steps have (SCH-8, SCH-12, UND-5).

    No step has failed for which nothing follows.
    """
    steps = {step.name: step.state for step in order.steps}
    standing = [step.name for step in order.steps if stands(step)]
    known = world.deployed.workflows.find(order.workflow, order.workflow_version)
    gone = known is None or world.deployed.known
    if isinstance(order.state, orders.Processed):
        done = all(isinstance(state, Completed | Skipped) for state in steps.values())
        demand(done, f"the order is Processed: {steps}")
    if isinstance(order.state, InError):
        holds = {
            Outcome.FAILED: order.has_any(Failed) or gone,
            Outcome.UNDONE: not standing,
            Outcome.UNDO_INCOMPLETE: standing,
        }
        demand(holds[order.state.outcome], f"the order is called {order.state.outcome}: {steps}")


def _over_for_good(world: World) -> None:
    """What was processed, or undone completely, is never touched again."""
    transitions = [
        world.rows[history_key(world.order_id, number)][1]
        for number in range(1, world.order().version + 1)
    ]
    over = [entry.event for entry in transitions[:-1] if entry.event in {"processed", "undone"}]
    same = transitions[-1].event in {"erased", "restored"}  # what it did is as before
    demand(same or not over, f"“{transitions[-1].event}” although the order was {over}")


def _nothing_stands_half_done(world: World, order: OrderAggregate) -> None:
    """What an order says of its end is true at the remote services."""
    at_services = [step for step in order.steps if not step.is_external]
    counted = [step for step in at_services if not isinstance(step.state, Skipped)]
    keys = {_key(world, step, _generation(step)) for step in counted}
    undone = {key for key in keys if f"{key} undo" in world.effects}
    if isinstance(order.state, orders.Processed):
        done = {key for key in keys if f"{key} do" in world.effects}
        demand(done == keys, f"the order is Processed, but not done: {keys - done}")
        # An undo that came after the copy is not known any more, as docs/disaster.md says.
        demand(world.restored or not undone, f"the order is Processed, but undone: {undone}")
    _not_turned_back(world, order)
    if isinstance(order.state, InError) and order.state.outcome is Outcome.UNDONE:
        skipped = order.in_state(Skipped)
        counted += [step for step in skipped if step.rules.on_failure is OnFailure.CONTINUE]
        standing = {step.name: _standing(world, step) for step in counted if step.rules.undoable}
        demand(
            not any(standing.values()),
            f"the order is called undone, but these key generations stand: {standing}",
        )


def _not_turned_back(world: World, order: OrderAggregate) -> None:
    """No order goes back once a point of no return was done (UND-6)."""
    done = [step.name for step in order.steps if step.rules.pivot and _standing(world, step)]
    demand(not (order.is_undo and done), f"the order goes back, though {done} was done (UND-6)")


def _evaluated_once(world: World) -> None:
    """A step that was begun is not called unneeded later (SCH-14)."""
    begun: set[str] = set()
    for event in (event for entry in world.history() for event in entry.events):
        begun |= {event.step} if isinstance(event, StepStarted) else set()
        unneeded = isinstance(event, SkippedByCondition) and event.step in begun
        demand(not unneeded, f"begun, and then not needed: {event} (SCH-14)")


def _answered_once(world: World) -> None:
    """An answer from outside completes its step once (ANS-3)."""
    happened = (event for entry in world.history() for event in entry.events)
    answered = [event.step for event in happened if isinstance(event, ExternalEventRecorded)]
    demand(len(answered) == len({*answered}), f"answered more than once: {answered} (ANS-3)")


def _begun_in_time(world: World, order: OrderAggregate) -> None:
    """No step begins before the time that its workflow says (SCH-15), or its order (SUB-9)."""
    date = order.submitted.not_before
    workflow = world.deployed.workflows.find(order.workflow, order.workflow_version)
    timed = {step.name: step for step in workflow.steps if step.start_at} if workflow else {}
    for entry in world.history():
        begun = {event.step for event in entry.events if isinstance(event, StepStarted)}
        times = {name: _time_of(order, timed[name]) for name in begun & timed.keys()}
        early = [name for name, time in times.items() if time and entry.at < time]
        demand(not early, f"begun before its time: {early} (SCH-15)")
        starts = (event for event in entry.events if isinstance(event, StepStarted))
        forward = {start.step for start in starts if not start.is_undo}
        demand(
            not (forward and date and entry.at < date),
            f"begun before the time of the order: {sorted(forward)} (SUB-9)",
        )


def _time_of(order: OrderAggregate, definition: StepDefinition) -> datetime | None:
    return definition.start_at(order.submitted, results_for(order, definition))


def _one_round_stands(world: World, order: OrderAggregate) -> None:
    """At most one round of a step stands, or may.

    A key generation starts where the one before has no effect (AGT-3).
    """
    for step in order.steps:
        is_unknown = isinstance(step.effect, Doubt) or isinstance(step.state, UnderWay)
        unknown = {_generation(step)} if is_unknown else set()
        generations = _standing(world, step) | unknown
        demand(
            len(generations) <= 1,
            f"of {step.name} these key generations stand, or may: {generations} (AGT-3)",
        )


def _standing(world: World, step: Step) -> set[int]:
    """The key generations of a step that took effect at its service, and were not undone."""
    # One that began after the copy is not known any more.
    generations = _generation(step) + 1 + world.restored
    keys = {number: _key(world, step, number) for number in range(generations)}
    return {
        number
        for number, key in keys.items()
        if f"{key} do" in world.effects and f"{key} undo" not in world.effects
    }


def _generation(step: Step) -> int:
    return step.key.generation if step.key else 0


def _key(world: World, step: Step, number: int) -> str:
    """The idempotency key of a round of a step: the shipped code is not asked."""
    return f"{world.order_id}:{step.name}{f':{number}' if number else ''}"


def _not_lost(world: World) -> None:
    begun = (handler.job for handler in world.handlers.values())
    on_its_way: tuple[Sent | Job, ...] = (*world.queue, *begun, *world.to_come)
    submitted = [message.body for message in on_its_way if message.kind == "submission"]
    here = any(world.order_id in body for body in submitted)
    demand(here or world.poison, "the order was accepted, and is nowhere")


def _numbered_without_gaps(world: World, order: OrderAggregate) -> None:
    for version in range(1, order.version + 1):
        demand(
            history_key(world.order_id, version) in world.rows, f"version {version} has no history"
        )
    beyond = history_key(world.order_id, order.version + 1)
    demand(beyond not in world.rows, "the history is ahead of the state")


def _handled_by_one(world: World, order: OrderAggregate) -> None:
    """Claims and what ends them alternate.

    `LockedBy` says who handles the order, and nothing while nobody does.
    """
    waits = any(step.is_external for step in order.steps)
    held: bool | None = False
    for entry in world.history():
        if held is not None and (entry.event == "claimed" or entry.event in GIVES_BACK):
            whose = "a scheduler" if held else "nobody"
            demand(held == (entry.event != "claimed"), f"“{entry.event}” while {whose} had it")
        if entry.event == "claimed" or entry.event in GIVES_BACK | ENDS:
            held = entry.event == "claimed"
        elif (waits and _is_of_people(entry)) or entry.actor == OVER_LINK:
            held = None  # nobody holds what only waited for an answer: it may be given back
    handler = order.state.instance if isinstance(order.state, Processing) else None
    is_handled = handler is not None
    demand(held in (None, is_handled), f"{order.state}, held: {held}")
    locked, working = order.derived.locked_by, order.has_any(AtWork)
    demand(
        locked == (handler if working else None),
        f"{order.state} and at work: {working}, but LockedBy is {locked}",
    )


def _is_of_people(entry: HistoryEntry) -> bool:
    return entry.actor.startswith("operator/") or entry.actor == CUSTOMER


def _shown_as_it_is(order: OrderAggregate) -> None:
    due, complete_by = order.in_state(UnderWay), order.derived.complete_by
    match order.state:
        case Processing():
            demand(due, "the order is Processing, but no step runs")
            demand(
                complete_by == min(step.state.complete_by for step in due),
                "CompleteBy is not the earliest of the steps'",
            )
            back = order.is_undo or order.has_any(Failed)
            held_up = back and not order.has_any(AtWork)
            demand(not held_up, "the end of the order waits for an answer from outside (SCH-12)")
        case Pending():
            dates = [step.retry_by for step in _to_be_tried(order) if step.retry_by]
            demand(
                complete_by == max(dates, default=None),
                f"CompleteBy {complete_by} is not that of the last retry: {dates} (SUP-3)",
            )
        case _:
            demand(
                complete_by is None, f"the order is {order.state}, and CompleteBy is {complete_by}"
            )
            demand(not due, f"a step runs, and nobody looks at it: the order is {order.state}")
    both = order.has_any(Running, AwaitingExternalEvent) and order.has_any(Undoing)
    demand(not both, "a step is being undone while another is being done")


def _to_be_tried(order: OrderAggregate) -> Sequence[Step]:
    """The steps that wait for an attempt; after a failure none does on the way forward (SCH-12)."""
    if order.is_undo:
        return order.in_state(UndoPending)
    return () if order.has_any(Failed) else order.in_state(Startable)


def _work_index_is_exact(world: World, order: OrderAggregate) -> None:
    stored = {key for key in world.work_items() if not key.startswith(WorkItemKind.OUTBOX)}
    expected = set(_work_items(world, order))
    demand(stored == expected, f"the work index holds {sorted(stored)}, owed is {sorted(expected)}")
    for row in (world.work_items()[key] for key in expected):
        stored_columns = {name: row.data.get(name) for name in ACTED_ON}
        true = _acted_on(order) | _date_of(world, order, row)
        demand(stored_columns == true, f"{row.key} says {stored_columns} of {true}")
    _is_listed_once(world, order)


def _is_listed_once(world: World, order: OrderAggregate) -> None:
    """An open order is in one list alone, by one row (OPR-1); of its claims, one names it."""
    state = order.state
    was_undone = isinstance(state, InError) and state.outcome is Outcome.UNDONE
    is_over = was_undone or isinstance(state, orders.Processed)
    rows = [(key.split("|")[0], row.data.get("List")) for key, row in world.work_items().items()]
    named = [(kind, name) for kind, name in rows if name]
    listed = [name for kind, name in named if kind == LISTS.get(name)]
    is_once = len(listed) == (not is_over) and {name for _, name in named} == {*listed}
    demand(
        is_once and len({*named}) == len(named),
        f"{order.order_id} is not in exactly one list: {named}",
    )


def _date_of(world: World, order: OrderAggregate, row: IndexRow) -> dict[str, object]:
    """Until when the steps of the claim of this row wait; empty for a row of another kind."""
    kind, _, capability, *_ = row.key.split("|") + [""] * 2
    if kind != WorkItemKind.PENDING:
        return {}
    turn = ready(order, world.deployed.workflows)
    return {"NotBefore": _first_date(order, [step for step in turn if _lane(step) == capability])}


def _first_date(order: OrderAggregate, turn: Collection[Step]) -> datetime | None:
    """When the first of these steps may begin; None if one could begin at its last change."""
    now = order.updated_at
    first = min((_begins_at(order, step) or now for step in turn), default=now)
    return first if first > now else None


def _lane(step: Step) -> str:
    return "-" if step.is_external else step.rules.capability


def _acted_on(order: OrderAggregate) -> dict[str, object]:
    """What rows of the work index say that others go by.

    They say who waits since when, for whom, and where there is room.
    """
    agents = " ".join(step.agent for step in order.in_state(AtWork))
    times = (order.derived.not_before, order.derived.ready_since, order.updated_at)
    values = (agents or None, *times, order.workflow, order.workflow_version)
    return dict(zip(ACTED_ON, values, strict=True))


def _work_items(world: World, order: OrderAggregate) -> Iterator[str]:
    """What is owed to an order, read off its records here once more.

    The shipped code is not asked.
    """
    derived, order_id = order.derived, order.order_id
    due = [step.state.complete_by for step in order.in_state(AtWork)]
    waits = [step.state.complete_by for step in order.in_state(AwaitingExternalEvent)]
    if may_go_on(order, world.deployed.workflows):
        turn = ready(order, world.deployed.workflows)
        rank = {"high": 0, "normal": 1}[order.priority]
        for need in {_lane(step) for step in turn} or {"-"}:
            alike = [step for step in turn if _lane(step) == need]
            date = _first_date(order, alike)
            place = sortable(derived.ready_since)
            if date and not _pauses(order, alike):
                place = f"later|{sortable(date)}"
            yield f"!pending|{rank}|{need}|{place}|{order_id}"
    if due:
        yield f"!running|{sortable(min(due))}|{order_id}"
    if waits and not order.hold:
        yield f"!waiting|{sortable(min(waits))}|{order_id}"
    if _waits_for_operator(order):
        yield f"!error|{sortable(order.updated_at)}|{order_id}"
    if order.hold:
        yield f"!held|{sortable(order.hold.since)}|{order_id}"


def _waits_for_operator(order: OrderAggregate) -> bool:
    return isinstance(order.state, InError) and order.state.outcome is not Outcome.UNDONE


def _begins_at(order: OrderAggregate, step: Step) -> datetime | None:
    """When a step may begin: the later of its own time and the order's, which no undo waits for."""
    of_order = None if order.is_undo else order.submitted.not_before
    return max(filter(None, (step.not_before, of_order)), default=None)


def _pauses(order: OrderAggregate, turn: Collection[Step]) -> bool:
    """Whether the first date of these steps is a pause between two attempts (SCH-16)."""
    dates = [(date, step) for step in turn if (date := _begins_at(order, step))]
    first = min((date for date, _ in dates), default=None)
    return any(
        date == first and isinstance(step.wait, BackingOff) and not step.answer_by
        for date, step in dates
    )


def _waits_for_nothing_else(world: World, order: OrderAggregate) -> None:
    """An order waits for a time only if one is to come for every step whose turn it is.

    So whoever has nothing to wait for is claimed at once: also an order that has failed (SCH-8).
    """
    last = [entry for entry in world.history() if entry.change_id][-1]
    now = last.at if last.event == "restored" else order.updated_at  # which is as it was
    turn = ready(order, world.deployed.workflows)
    first = min((_begins_at(order, step) or now for step in turn), default=now)
    chosen = first if first > now else None
    demand(
        order.derived.not_before == chosen,
        f"the order waits until {order.derived.not_before}; its steps wait until {chosen}",
    )


def _attempts_counted_once(world: World, order: OrderAggregate) -> None:
    claims = 0
    for entry in world.history():
        begins = any(isinstance(event, StepStarted) for event in entry.events)
        claims += entry.event == "claimed" or (entry.event == "not-attempted" and begins)
    attempts = sum(step.counts.attempts for step in order.steps)
    single = len(order.steps) == 1 and not order.is_undo
    demand(
        not single or attempts == claims,
        f"{attempts} attempts, though the order was claimed {claims} times",
    )


def _failures_counted_once(transition: Transition) -> None:
    """What expires at the same time counts once, until the order begins afresh (SUP-3)."""
    before, after = transition.before.failures, transition.after.failures
    if transition.entry.event in {"resubmitted", "skipped", "retried-with-new-key", "settled"}:
        demand(after == 0, f"FailureCount {after} of an order that was {transition.entry.event}")
    else:
        most = transition.entry.actor.startswith("supervisor/")
        demand(0 <= after - before <= most, f"FailureCount {before}, then {after}")


def _counted_by_the_rules(transition: Transition, after: Step) -> None:
    """Each expiry of a step counts once, until it begins afresh.

    A full count makes it rest, or fail (SUP-3, SUP-4).
    """
    before = transition.before.step(after.name)
    charged = _expired(transition, before) and _expiries(after) > _expiries(before)
    ended = isinstance(after.state, FAILED | Skipped | Completed)
    again = (isinstance(before.state, FAILED) and not ended) or _requested_anew(transition, before)
    mended = again and transition.entry.actor.startswith("operator/")
    afresh = mended or (_goes_back(after) and not _goes_back(before))
    expiries = 0 if afresh else _expiries(before) + bool(charged)
    demand(
        _expiries(after) == expiries,
        f"{after.name} counts {_expiries(after)} expiries, and had {expiries}",
    )
    may_be_done = isinstance(after.state, OPEN) and not transition.after.is_undo
    full = after.counts.failures >= after.rules.threshold
    demand(
        not (full and (_goes_back(after) or may_be_done)),
        f"{after.name} is {after.state} after {after.counts.failures} failures",
    )
    demand(
        after.counts.cooldowns <= after.rules.max_cooldowns,
        f"{after.name} rests for the {after.counts.cooldowns}th time",
    )


def _goes_back(step: Step) -> bool:
    """Whether the step is being undone, or is to be."""
    return isinstance(step.state, UndoPending | Undoing)


def _requested_anew(transition: Transition, before: Step) -> bool:
    """Whether an order goes on from Error whose external event was awaited before (SCH-12)."""
    waited = before.is_external and isinstance(before.state, NOT_STARTED)
    return _leaves_error(transition) and not transition.after.is_undo and waited


def _leaves_error(transition: Transition) -> bool:
    was, now = transition.before.state, transition.after.state
    return isinstance(was, InError) and not isinstance(now, InError)


def _expired(transition: Transition, before: Step) -> bool:
    """Whether a supervisor says that the time of the step's attempt is up."""
    after = transition.after.step(before.name)
    is_over = isinstance(before.state, UnderWay) and not isinstance(after.state, UnderWay)
    by_supervisor = transition.entry.actor.startswith("supervisor/")
    return by_supervisor and is_over and not isinstance(after.state, RequestCancelled)


def check_charged(handler: Handler, transition: Transition) -> None:
    """Check that an attempt is charged if, and only if, an agent reported its begin (SUP-3)."""
    if handler.job.kind != "sweep" or transition.before is None:
        return
    reports = [row for answer in handler.log for row in health_in(answer)]
    reported = {request for row in reports for request in row.begun}
    over = [step for step in transition.before.in_state(UnderWay) if _expired(transition, step)]
    expired = {
        step.name: step.is_external or request_id_of(transition.before.order_id, step) in reported
        for step in over
    }
    counted = transition.after.failures - transition.before.failures
    demand(
        counted == any(expired.values()), f"{counted} failures counted; begun: {expired} (SUP-3)"
    )
    for name, begun in expired.items():
        before, after = transition.before.step(name), transition.after.step(name)
        taken_back = transition.after.is_undo and isinstance(before.state, BEING_DONE)
        charged = _expiries(after) > _expiries(before)
        demand(
            taken_back or charged == begun, f"{name} is charged: {charged}, begun: {begun} (SUP-3)"
        )


def check_blamed(handler: Handler, transition: Transition) -> None:
    """Check that only a fault of a step's own service requests the undo, and does (SUP-3).

    What a gateway turned away is for an operator, whatever becomes of other requests.
    """
    if handler.job.kind != "sweep" or transition.before is None:
        return
    faults = [fault for answer in handler.log for row in health_in(answer) for fault in row.faults]
    by_gateway = {request for fault in faults if fault.by_gateway for request in fault.requests}
    over = [step for step in transition.before.in_state(AtWork) if _expired(transition, step)]
    turned_away = {
        step.name for step in over if request_id_of(transition.before.order_id, step) in by_gateway
    }
    failed = [
        step
        for step in _failed(transition.after)
        if step.name in _names(over) and step.rules.on_failure is OnFailure.UNDO
    ]
    blamed = _names(failed) & turned_away - _names(filter(_is_for_operator, failed))
    demand(not blamed, f"{blamed} was turned away, and the order is undone for it (SUP-3)")
    asks = _names(failed) - turned_away
    ended = [event for event in transition.entry.events if isinstance(event, OrderEnded)]
    stays = ended and not _passed_pivots(transition.after)
    demand(
        not (asks and stays), f"{asks} failed at its service, and the order is not undone (SUP-3)"
    )


def _is_for_operator(step: StepIn[Any]) -> bool:
    return bool(step.state.operator_decides)


def check_undo(handler: Handler, transition: Transition) -> None:
    """Check that a supervisor undoes no order: it leaves that to a scheduler (SUP-6)."""
    if handler.job.kind != "sweep" or transition.before is None:
        return
    was, now = transition.before.direction, transition.after.direction
    over = _names(
        step for step in transition.before.in_state(UnderWay) if _expired(transition, step)
    )
    known = _names(filter(_goes_back, transition.before.steps))
    begun = _names(filter(_goes_back, transition.after.steps)) - known - over
    demand(was is now and not begun, f"the supervisor begins to undo: {now} {begun} (SUP-6)")


def _names(steps: Iterable[Step]) -> set[str]:
    return {step.name for step in steps}


def is_health(answer: Answer) -> bool:
    """Whether the answer is a look at the agents' health rows, of which there may be none."""
    return isinstance(answer, Returned) and isinstance(answer.value, HealthRows)


def health_in(answer: Answer) -> list[AgentHealth]:
    """Return the agents' health rows, if the answer is a look at them."""
    value = answer.value if isinstance(answer, Returned) else None
    return list(value) if isinstance(value, HealthRows) else []


def _expiries(step: Step) -> int:
    """How often the step has expired since it began afresh: each rest stands for a full count."""
    return step.counts.cooldowns * step.rules.threshold + step.counts.failures


def _alerted_once(world: World) -> None:
    """One alert for each time that the order ended in `Error`: sent, or owed (ALR-1)."""
    failed = [
        entry for entry in world.history() if entry.event in {"failed", "undone", "undo-incomplete"}
    ]
    expected = [row.data for row in unsent(world) if row.data["To"] == OPERATORS]
    waiting = {row["EventId"] for row in expected if row["Type"] in OF_ENDS}
    alerts = waiting | world.published
    demand(len(alerts) == len(failed), f"{len(failed)} times Error, {len(alerts)} alerts")


def check_commit(world: World, transition: Transition) -> None:
    """Check a write at the moment at which the store carries it out."""
    stored = world.order()
    if transition.before is None or stored is None:
        demand(stored is None, "an order was written over a recorded one")
        return
    demand(transition.before.version == stored.version, "a change was written over another one")
    _nothing_begun_after_a_failure(transition)
    _nothing_begun_while_it_is_held(transition)
    _nothing_done_again(transition)
    _deadlines_move_by_the_time_held(transition)
    _cancelled_in_time(world, transition)
    for step in transition.before.steps:
        _answered_in_its_time(transition, step)
    _by_one_who_knows_it(world, transition)
    _out_of_error_by_people(transition)
    check_alert(transition)
    _comes_to_something(transition)
    _tells_what_changed(transition)
    _keeps_its_place(world, transition)
    _failures_counted_once(transition)
    for step in transition.after.steps:
        _attempted_by_the_rules(world, transition, step)
        _counted_by_the_rules(transition, step)
    for step in transition.before.in_state(UnderWay):
        _over_in_time(world, transition, step)


def _over_in_time(world: World, transition: Transition, step: StepIn[UnderWay]) -> None:
    """An attempt ends by a reply in its time, or by a supervisor after it (SCH-6, SUP-2)."""
    now, actor = transition.after.step(step.name), transition.entry.actor
    if now and isinstance(now.state, UnderWay) and now.counts.attempts == step.counts.attempts:
        return  # this change is not about it
    by_supervisor = actor.startswith("supervisor/")
    if now and actor == OVER_LINK:
        return  # it counts until somebody has given up (ANS-2)
    if step.is_external and (not by_supervisor or isinstance(now.state, RequestCancelled)):
        return  # its deadline is when somebody is to give up, and no end of what counts
    if by_supervisor:  # whatever its own clock says (FLT-9)
        demand(
            world.now > step.state.complete_by,
            "a step was called expired whose time had not passed",
        )
        _due_again(transition, step.name)
    else:
        named = [getattr(event, "step", None) for event in transition.entry.events]
        demand(step.name in named, f"an attempt of {step.name} ended without a reply (SCH-2)")
        in_time = transition.entry.at <= step.state.complete_by + world.deployed.tolerance
        demand(in_time, f"a reply of {step.name} counted that came too late")


def _due_again(transition: Transition, name: str) -> None:
    """A step that is tried again says by when that attempt should be over (SUP-3).

    The request to undo the order is another thing: what is undone then is not tried again.
    """
    if transition.before.direction is not transition.after.direction:
        return
    for step in _to_be_tried(transition.after):
        by = (step.not_before or transition.entry.at) + step.rules.timeout
        right = step.name != name or step.retry_by == by
        demand(right, f"{name} is tried again by {step.retry_by}, and not by {by} (SUP-3)")


def _out_of_error_by_people(transition: Transition) -> None:
    """What has failed stays so until an operator acts, or the customer cancels it (SUB-8)."""
    actor = transition.entry.actor
    by_people = actor.startswith("operator/") or actor == CUSTOMER
    demand(by_people or not _leaves_error(transition), f"{actor} took the order out of Error")


def _comes_to_something(transition: Transition) -> None:
    """A claim begins something, or ends it; else it would write nothing (SCH-2)."""
    if transition.entry.event in {"claimed", "step-started"}:
        ran = transition.before.in_state(UnderWay)
        begun = [step for step in transition.after.in_state(UnderWay) if step not in ran]
        demand(begun, f"“{transition.entry.event}”, and nothing has begun")


def _tells_what_changed(transition: Transition) -> None:
    """The history tells of each attempt that begins, each step done or undone, and each end."""
    before, after = transition.before, transition.after
    running = after.in_state(UnderWay)
    begun = {step.name for step in running if _attempts_in(transition, step.name) > 0}
    done, undone = _names(_newly(Completed, transition)), _names(_newly(Undone, transition))
    done_events = StepCompleted | ExternalEventRecorded | StepSettled
    expected: dict[Any, set[str]] = {StepStarted: begun, done_events: done, StepUndone: undone}
    happened: tuple[Any, ...] = tuple(transition.entry.events)
    for kind, names in expected.items():
        recorded_events = {event.step for event in happened if isinstance(event, kind)}
        demand(
            recorded_events >= names,
            f"{kind} of {names}, and the history tells of {recorded_events}",
        )
    ended = after.has_ended and type(after.state) is not type(before.state)
    ends = [
        name_of(event)
        for event in transition.entry.events
        if isinstance(event, OrderProcessed | OrderEnded)
    ]
    how = [_end_of(after)] if ended else []
    demand(ends == how, f"the order ends as {how}, and the history tells {ends}")


def _attempts_in(transition: Transition, step: str) -> int:
    """How many attempts at the step began."""
    before, after = transition.before.step(step), transition.after.step(step)
    return after.counts.attempts - before.counts.attempts


def _newly(state: type[State], transition: Transition) -> list[Step]:
    """The steps that came into the state."""
    was = _names(transition.before.in_state(state))
    return [step for step in transition.after.in_state(state) if step.name not in was]


def _end_of(order: OrderAggregate) -> str:
    return order.state.outcome if isinstance(order.state, InError) else "processed"


def _settled(order: OrderAggregate) -> set[str]:
    return _names(order.in_state(SettledStep))


def _keeps_its_place(world: World, transition: Transition) -> None:
    """An order goes to the end of its queue when something has come of it (SCH-11).

    So it does when somebody has acted on it.
    """
    before, after, now = transition.before, transition.after, transition.entry.at
    settled = _settled(before) != _settled(after)
    turned = before.direction is not after.direction
    released = before.hold and not after.hold
    resumed = before.has_ended and not after.has_ended
    anew = settled or turned or released or resumed
    pauses = _pauses(after, ready(after, world.deployed.workflows))
    until = None if pauses else after.derived.not_before
    place = until or (now if anew else min(before.derived.ready_since, now))
    demand(
        after.derived.ready_since == place,
        f"“{transition.entry.event}”: waits since {after.derived.ready_since}: {place}",
    )


def _attempted_by_the_rules(world: World, transition: Transition, after: Step) -> None:
    """Attempts grow by one, take their timeout, and begin when they may (SUP-3, UND-2)."""
    before, now = transition.before.step(after.name), transition.entry.at
    begun, attempts = _attempts_in(transition, after.name), after.counts.attempts
    demand(begun in (0, 1), f"{after.name}: {begun} attempts at a time, now {attempts}")
    if not begun:
        return
    demand(
        attempts <= world.deployed.most_attempts, f"{after.name} is tried for the {attempts}th time"
    )
    _stays_where_its_key_is_known(world, before, after)
    _apart_from_the_last(world, transition, after)
    demand(
        after.complete_by == now + after.rules.timeout,
        f"{after.name} has until {after.complete_by}, begun at {now}",
    )
    late = transition.entry.event == "claimed" or before.complete_by is None
    demand(
        not late or (before.not_before or now) <= now,
        f"{after.name} begun before {before.not_before}",
    )
    if isinstance(after.state, Undoing) and after.rules.late_effect_window:
        until = _tried_at(world, after) + after.rules.timeout + world.deployed.tolerance
        settled = until + after.rules.late_effect_window
        demand(
            now >= settled,
            f"{after.name} undone at {now}; a call may take effect until {settled} (UND-2)",
        )


def _apart_from_the_last(world: World, transition: Transition, after: Step) -> None:
    """What has counted as no failure is repeated after a pause that grows (SCH-16)."""
    before = [event for entry in world.history() for event in entry.events]
    uncounted = _uncounted([*before, *transition.entry.events], after)
    began = max((entry.at for entry in world.history() if _begins(entry, after)), default=NEVER)
    if uncounted:
        least = timedelta(seconds=min(2 ** (uncounted - 1) / 4, 300))
        demand(
            transition.entry.at >= began + least,
            f"{after.name} begun at {began}, and again at {transition.entry.at} (SCH-16)",
        )


def _begins(entry: HistoryEntry, step: Step) -> bool:
    return any(isinstance(event, StepStarted) and event.step == step.name for event in entry.events)


def _uncounted(events: Sequence[Any], after: Step) -> int:
    """How many attempts of one kind have counted as no failure since anything else came of it."""
    undo, count, ends = isinstance(after.state, Undoing), 0, 0
    for event in reversed(events):
        if _begins_anew(event):
            break
        if getattr(event, "step", None) != after.name:
            continue
        if isinstance(event, StepStarted) and event.is_undo is undo:
            count, ends = count + ends, 0
        elif _is_uncounted(event):
            ends += 1
        else:
            break
    return count


def _begins_anew(event: Any) -> bool:
    """Whether a person, or the undo of the order, lets its steps begin anew."""
    if isinstance(event, StepActionTaken):
        return event.action == Action.RETRY_WITH_NEW_KEY
    return isinstance(event, ActionTaken | PersonalDataErased | UndoRequested)


def _is_uncounted(event: Any) -> bool:
    return isinstance(event, NotAttempted | AttemptDeferred) or (
        isinstance(event, AttemptExpired) and event.failure is None
    )


def _tried_at(world: World, step: Step) -> datetime:
    """When the last attempt to do the step began, as the history tells."""

    def begins(event: Any) -> bool:
        return isinstance(event, StepStarted) and event.step == step.name and not event.is_undo

    return max(
        (entry.at for entry in world.history() if any(map(begins, entry.events))), default=NEVER
    )


def _stays_where_its_key_is_known(world: World, before: Step, after: Step) -> None:
    """What may have been done is tried again, and undone, where its key is known (AGT-3)."""
    at_service = before.counts.attempts and not before.is_external
    if at_service and (isinstance(before.effect, Doubt) or isinstance(after.state, Undoing)):
        former, now = (world.deployed.providers[step.agent] for step in (before, after))
        demand(
            former == now, f"{after.name} may have been done at {former}, and goes to {now} (AGT-3)"
        )


def check_answered(handler: Handler, transition: Transition) -> None:
    """Check what a reply changes: the step that it names, at its current attempt (SCH-6)."""
    if handler.job.kind != "reply" or transition.before is None:
        return
    reply = decode_reply(handler.job.body)
    named = (reply.order_id, reply.step, reply.attempt, handler.job.agent)
    answered = [
        step for step in transition.before.in_state(AtWork) if step not in transition.after.steps
    ]
    others = [
        step.name
        for step in answered
        if (transition.after.order_id, step.name, step.counts.attempts, step.agent) != named
    ]
    demand(
        not others, f"a reply to attempt {reply.attempt} of {reply.step} changed {others} (SCH-6)"
    )
    _keeps_the_pause(transition, reply)


def _keeps_the_pause(transition: Transition, reply: AgentReply) -> None:
    """A step waits for as long as its agent says, unless that is one instance's circuit (AGT-8)."""
    turned = reply.action == "do" and transition.after.is_undo
    if not isinstance(reply, NotAttemptedReply | DeferredReply):
        return
    is_of_circuit = reply.reason is not None and reply.reason.is_circuit_open
    if reply.retry_after and not is_of_circuit and not turned:
        until = transition.entry.at + timedelta(seconds=reply.retry_after)
        step = transition.after.step(reply.step)
        kept = step.counts.attempts == reply.attempt and (step.not_before or NEVER) >= until
        demand(kept, f"{reply.step} waits until {step.not_before}, and not until {until} (AGT-8)")


def _nothing_begun_after_a_failure(transition: Transition) -> None:
    being_done = [
        *transition.after.in_state(Running),
        *transition.after.in_state(AwaitingExternalEvent),
    ]
    begun = [step.name for step in being_done if _has_begun(transition, step)]
    demand(
        not (begun and _failed(transition.after)),
        f"{begun} begun although another step has failed (SCH-12)",
    )


def _has_begun(transition: Transition, step: Step) -> bool:
    """Whether the attempt that is under way after the change was not before it."""
    before = transition.before.step(step.name)
    ran = before is not None and isinstance(before.state, UnderWay)
    return not (ran and before.counts.attempts == step.counts.attempts)


def _failed(order: OrderAggregate) -> list[StepIn[Any]]:
    """The steps of which there are no more attempts, forward or back."""
    return [step for step in order.steps if isinstance(step.state, FAILED)]


def _nothing_begun_while_it_is_held(transition: Transition) -> None:
    """What runs while an order is held ran before (OPR-7)."""
    begun = [step.name for step in transition.after.steps if _attempts_in(transition, step.name)]
    demand(
        not (begun and transition.before.hold),
        f"{begun} begun although the order is held (OPR-7)",
    )


def _deadlines_move_by_the_time_held(transition: Transition) -> None:
    """What is awaited has the time that it had when the order was held, and counts none (OPR-7)."""
    hold = transition.before.hold
    if hold is None:
        return
    by = transition.entry.at - hold.since if transition.entry.event == "released" else timedelta()
    for step in transition.before.in_state(AwaitingExternalEvent):
        after, due = transition.after.step(step.name), step.state.complete_by
        demand(
            after.complete_by in (None, due + by),
            f"{step.name} was due {due}, and is {after.complete_by}: "
            f"the deadline moves by the time held, {by} (OPR-7)",
        )
        counted = after.counts.failures - step.counts.failures
        demand(counted <= 0, f"{step.name} counts a failure while the order is held (OPR-7)")


def check_paused(handler: Handler, transition: Transition) -> None:
    """Check that a scheduler sends nothing to an agent that was paused at its last look (OPR-9)."""
    if transition.before is None:
        return
    health = next((health_in(entry) for entry in reversed(handler.log) if is_health(entry)), [])
    begun = [step for step in transition.after.in_state(UnderWay) if _has_begun(transition, step)]
    paused = [step.agent for step in begun if pause_of(health, step.agent, transition.entry.at)]
    event = transition.entry.event
    demand(not paused, f"“{event}” sends requests to {paused}, which is paused (OPR-9)")


def _cancelled_in_time(world: World, transition: Transition) -> None:
    """A customer cancels until the step begins that the endpoint names (SUB-8)."""
    if transition.entry.actor != CUSTOMER:
        return
    until = world.deployed.endpoint_of(transition.before.workflow).cancel_until
    step = transition.before.step(until)
    demand(not step.counts.attempts, f"a customer cancels, and {until} has begun (SUB-8)")


def _answered_in_its_time(transition: Transition, before: Step) -> None:
    """An answer counts, early or late, until somebody has given up, and never later (ANS-2)."""
    after, was = transition.after.step(before.name), transition.before
    is_done = isinstance(after.state, Completed) and not isinstance(before.state, Completed)
    if not before.is_external or not is_done:
        return
    over = was.has_ended or was.is_undo
    demand(
        isinstance(before.state, OPEN) and not over,
        f"{before.name} was {before.state} in an order that was {was.state}, "
        f"{was.direction}, and is Completed (ANS-4)",
    )
    requester = transition.entry.actor.partition("/")[0]
    demand(requester == "operator", f"{requester} has completed {before.name} (ANS-1)")


def _nothing_done_again(transition: Transition) -> None:
    """What is completed is only ever undone (SCH-9)."""
    open_now = {step.name for step in transition.after.steps if isinstance(step.state, OPEN)}
    again = _names(transition.before.in_state(Completed)) & open_now
    demand(not again, f"{again} completed, and to be done again (SCH-9)")


def _by_one_who_knows_it(world: World, transition: Transition) -> None:
    """A scheduler leaves alone what is newer than it knows: workflows, and providers (FLT-12)."""
    role, _, slot = transition.entry.actor.partition("/")
    if role != "scheduler":
        return
    demand(
        not _is_newer(transition.before, world.deployed.known_to(slot)),
        f"{slot} changed an order that it does not know",
    )
    given_up = [step for step in _failed(transition.after) if step.key and step.key.provider]
    of_others = [step.name for step in given_up if not world.deployed.has_agent(slot, step.agent)]
    demand(not of_others, f"{slot} gave up {of_others}, whose provider it does not know (FLT-12)")


def _is_newer(order: OrderAggregate, known: Workflows) -> bool:
    versions = [workflow.version for workflow in known.all if workflow.name == order.workflow]
    return order.workflow_version > max(versions, default=0)


def check_note(world: World, handler: Handler, note: Note) -> None:
    """Check what is only noted: no reply that counts (SCH-6)."""
    order = world.order()
    if handler.job.kind != "reply" or order is None:
        return
    known = world.deployed.known_to(handler.slot)
    if known.was_retired(order.workflow, order.workflow_version):
        return
    reply = decode_reply(handler.job.body)
    started = _under_way(world, reply.step)
    if started is None:
        return
    named = (reply.attempt, handler.job.agent, reply.action == "undo")
    is_current = named == (started.attempt, started.agent, started.is_undo)
    in_time = note.entry.at <= started.complete_by + world.deployed.tolerance
    demand(
        not (is_current and in_time),
        f"a reply that counts was refused: {note.entry.detail} (SCH-6)",
    )


def _under_way(world: World, step: str) -> StepStarted | None:
    """Return the beginning of the attempt that is under way by the history, whatever is recorded.

    What was under way when the order was copied is not known any more.
    """
    for event in reversed([event for entry in world.history() for event in entry.events]):
        if isinstance(event, Restored):
            return None
        if getattr(event, "step", None) == step and not isinstance(event, ReplyRefused):
            return event if isinstance(event, StepStarted) else None
    return None


def check_acted(world: World, handler: Handler) -> None:
    """Check what somebody was told that it is done: it stands in the state (OPR-6)."""
    if handler.job.kind in (*SAYS, *CALLS_BACK):
        _is_recorded(world, handler)
        return
    acted = [entry for entry in world.history() if entry.actor.startswith(handler.slot)]
    events = {entry.event for entry in acted}
    demand(
        events & EVENTS_OF[handler.job.kind],
        f"{handler.job.kind} is said to be done, and is not recorded (OPR-6)",
    )


def _is_recorded(world: World, handler: Handler) -> None:
    """Check that who was told that an answer is recorded, or was before, finds it (ANS-3)."""
    step = world.order().step(handler.job.step)
    recorded_events: Any = ExternalEventRecorded | StepFailed | EarlyRefusalRecorded
    if handler.job.kind in CALLS_BACK:  # its agent may have told it before
        recorded_events |= StepCompleted
    happened = (event for entry in world.history() for event in entry.events)
    recorded = any(
        isinstance(event, recorded_events) and event.step == step.name for event in happened
    )
    demand(recorded, f"{handler.job.kind} is said to be recorded, and {step.name} is {step.state}")


def check_read(world: World, handler: Handler, effect: PortCall) -> None:
    """Check a look at the store: who sweeps has the lease at each page (SUP-5).

    It is no fence for what follows.
    """
    if handler.job.kind == "sweep" and effect.name == "work_items":
        held = world.lease is not None and world.lease[0] == handler.slot
        demand(held, f"{handler.slot} looks for overdue orders without the lease (SUP-5)")


def check_call(world: World, request: AgentRequest) -> None:
    """Check what is about to happen at a service: in the order of steps, or in reverse (UND-1)."""
    order = world.order()
    if order is None:
        return
    workflow = world.deployed.workflows.find(order.workflow, order.workflow_version)
    if workflow is None:
        return
    completed = _names([step for step in order.in_state(Completed) if step.is_external])
    skipped = _names(order.in_state(Skipped)) | completed
    done, undone = _steps(world, "do"), _steps(world, "undo")
    if world.restored and not _is_under_way(order.step(request.step), request):
        return  # it was sent before the order was restored, and what had led to it is not known
    if request.action == "do":
        definition = workflow.definition(request.step)
        before = set(definition.after if definition else ())
        demand(done | skipped >= before, f"{request.step} begins before {before - done} (SCH-10)")
    else:
        to_undo = {step.name for step in workflow.steps if step.compensation is not None}
        standing = (done - undone - skipped) & dependents(workflow, request.step) & to_undo
        demand(not standing, f"{request.step} is undone while {standing} stands (UND-1)")


def _is_under_way(step: Step | None, request: AgentRequest) -> bool:
    """Whether the request is that of the attempt which is under way."""
    runs = step is not None and isinstance(step.state, UnderWay)
    return runs and step.counts.attempts == request.attempt


def check_served(world: World, request: AgentRequest, provider: str) -> None:
    """Check that nobody does or undoes what another provider may have done (AGT-3).

    It knows another's keys from nowhere.
    """
    others = {name for key, name in world.served if key == request.idempotency_key} - {provider}
    demand(not others, f"{request.step} goes to {provider}, and {others} has served it (AGT-3)")


def check_forgotten(world: World, request: AgentRequest) -> None:
    """Check that nothing is done twice because its key was forgotten (AGT-12)."""
    done = request.action == "do" and f"{request.idempotency_key} do" in world.effects
    demand(not done, f"{request.step} is done a second time under a forgotten key (AGT-12)")


def is_true(world: World, order: OrderAggregate, kind: str) -> bool:
    """Whether an operator who has found out would say this, where keys are forgotten."""
    if not any(agent.keys_last for agent in world.deployed.agents.values()):
        return True
    stands = any(_standing(world, step) for step in _failed(order))
    return {"retry-with-new-key": not stands, "skip": stands is not order.is_undo}.get(kind, True)


def found_out(world: World, order: OrderAggregate) -> tuple[Step, bool]:
    """The first step in doubt, and whether an operator finds at its service that it was done."""
    step = next(step for step in order.steps if isinstance(step.effect, Doubt))
    return step, bool(_standing(world, step))


def _steps(world: World, action: str) -> set[str]:
    """The steps of which this has happened."""
    found = (effect.split(" ") for effect in world.effects)
    return {key.split(":")[1] for key, done in found if done == action}


def check_effect(world: World, handler: Handler, effect: PortCall) -> None:
    """Check what a handler is about to do."""
    if effect.name == "call":
        _called_in_time(world, effect.args[0])
    if effect.name == "note":
        _submitted_as_recorded(effect.args[0])
    if effect.name == "send":
        for message in effect.args[0]:
            kind = world.deployed.kinds.get(message.queue)
            if kind in world.deployed.requests:
                _recorded_first(world, decode(AgentRequest, message.body))
            if kind == "reply":
                _replied_in_time(world, handler, message)


def _called_in_time(world: World, request: AgentRequest) -> None:
    demand(
        world.now < request.complete_by, "the service was called after the complete-by time (AGT-5)"
    )
    part = world.about(request.order_id)
    step = part.order().step(request.step) if part.order() else None
    if step is None:
        return
    # A late duplicate may be of a round before; of the current attempt there is one key only.
    first = _generation(step) if _is_under_way(step, request) else 0
    keys = [_key(part, step, number) for number in range(first, _generation(step) + 1)]
    demand(
        request.idempotency_key in keys,
        f"idempotency key {request.idempotency_key} for {keys} (AGT-3)",
    )


def _submitted_as_recorded(note: Note) -> None:
    """Check that no submission is refused as another one: here each is sent again as it was."""
    refused = any(isinstance(event, SubmissionRefused) for event in note.entry.events)
    demand(not refused, "a submission that comes again is refused as other content (SUB-3)")


def _replied_in_time(world: World, agent: Handler, reply: BusMessage) -> None:
    request = decode(AgentRequest, agent.job.body)
    demand(world.now < request.complete_by, "an agent replied after the complete-by time (AGT-4)")
    left = request.complete_by - world.deployed.clock_of(agent.slot, world.now)
    demand(
        reply.time_to_live and reply.time_to_live <= left,
        "a reply outlives the complete-by time (AGT-4)",
    )


def _recorded_first(world: World, request: AgentRequest) -> None:
    order = world.about(request.order_id).order()
    step = order.step(request.step) if order else None
    demand(
        step and step.counts.attempts >= request.attempt,
        "a request goes out that is not recorded as running (SCH-3)",
    )


def has_ended(world: World) -> bool:
    """Whether the order is at an end, or is held, so that only an operator can make a beginning.

    Also if it was never recorded.
    """
    order = world.order()
    if order is None:
        return bool(world.poison)
    return order.has_ended or order.hold is not None


def check_end(world: World) -> None:
    """Check a state in which nothing happens by itself: orders have ended, and nothing is owed.

    But an operator, if it is in `Error` and was not undone.
    """
    for part in world.parts():
        _check_end(part)


def _check_end(world: World) -> None:
    order = world.order()
    if order is None:
        to_come = any(world.order_id in message.body for message in world.to_come)
        demand(
            world.poison or to_come, "nothing can happen any more, and the order is not recorded"
        )
        return
    demand(has_ended(world), f"nothing can happen any more, and the order is {order.state}")
    present = [key.split("|")[0] for key in world.work_items()]
    expected = ["!error"] * _waits_for_operator(order) + ["!held"] * (order.hold is not None)
    demand(present == expected, f"nothing can happen any more, and this is owed: {present}")
