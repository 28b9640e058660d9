"""What must hold in every state of every world (pattern.md, 10)."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from core import actions
from core.agenda import Kind
from core.changes import HistoryEntry, Note
from core.happenings import (
    Accepted,
    ActedOn,
    Answered,
    Ended,
    Expired,
    NotNeeded,
    NotTried,
    Processed,
    RefusedEarly,
    Renewed,
    Settled,
    StepCompleted,
    StepFailed,
    StepStarted,
    StepUndone,
    SubmissionRefused,
    UndoRequested,
)
from core.keys import history_key, sortable
from core.life import ENDED, Direction, Outcome, ProcessState, StepState
from core.messages import OPERATORS, AgentReply, AgentRequest, BusMessage, request_id
from core.orders import OUTSIDE, OnFailure, Snapshot, Step
from core.workflow import StepDefinition, Workflows
from engine.conversion.changes import OldChange
from engine.conversion.records import to_new
from engine.decisions.requests import results_for
from kit.exploration.deployment import CALLS_BACK, CUSTOMER_CANCEL, ERASE, SAYS
from kit.exploration.driving import Answer, Effect, Handler, HealthRows, Job, Returned
from kit.exploration.due import may_go_on
from kit.exploration.roles import decode
from kit.exploration.told import OF_ENDS, check_alert, check_notices, stands, unsent
from kit.exploration.turns import at_work, awaited, dependents, ready
from kit.exploration.violations import demand
from kit.exploration.world import Sent, World
from stores.agent_health import AgentHealth, hold_of

GIVES_BACK = {"recovered", "put-back", "waits"}
ENDS = {"processed", "failed", "undone", "undo-incomplete", "undo-requested"}
"""A claim may end the order at once, so these may also come while nobody has it."""

OPEN = (StepState.NOT_STARTED, StepState.RUNNING)
RUNS = (StepState.RUNNING, StepState.UNDOING)
WAITS = (*OPEN, StepState.UNDOING)
"""In these states nothing has come of a step."""
ACTED_ON = ("Agents", "NotBefore", "WaitsSince", "UpdatedAt", "Workflow", "WorkflowVersion")
NEVER = datetime.min.replace(tzinfo=UTC)
CUSTOMER = "customer"
"""The actor of what a customer asked for."""
OVER_LINK = "outside"
"""The actor of an answer over a link."""

EVENTS_OF = {
    "resubmit": {"resubmitted"},
    "skip": {"skipped", "step-skipped"},
    "renew": {"renewed", "step-renewed"},
    "settle": {"settled", "step-settled"},
    "cancel": {"cancelled"},
    "hold": {"held"},
    "release": {"released"},
    "hurry": {"hurried"},
    CUSTOMER_CANCEL: {"cancelled"},
    ERASE: {"erased"},
}
"""What the history says of what operators and customers do."""


def check(world: World) -> None:
    """Check a state: of each order what must hold, whatever becomes of those beside it."""
    for part in world.each():
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


def _check_rows(world: World, order: Snapshot) -> None:
    """Check what follows from the stored rows alone, once for all worlds that share them."""
    _numbered_without_gaps(world, order)
    _handled_by_one(world, order)
    _shown_as_it_is(order)
    _owed_as_it_is(world, order)
    _waits_for_nothing_else(world, order)
    _has_a_way_out(world, order)
    if not world.restored:  # what was ever tried is not known any more
        _attempts_counted_once(world, order)
    _over_for_good(world)
    _ended_as_its_steps_say(world, order)
    _judged_once(world)
    _answered_once(world)
    _begun_in_time(world, order)


def _has_a_way_out(world: World, order: Snapshot) -> None:
    """An order in `Error` can be cancelled, unless a step certainly passed its pivot (OPR-12).

    Where only a doubt forbids that, an operator can settle it.
    """
    forward = order.state.direction is Direction.FORWARD
    if order.state.process_state is not ProcessState.ERROR or not forward:
        return
    certain = [step.name for step in order.passed_pivots() if not step.effect_unknown]
    ways = {"cancel", "settle"} & {*actions.possible(to_new(order), world.now)}
    demand(ways or certain, f"the order is in Error, and nothing can end its doubt: {ways}")


def _ended_as_its_steps_say(world: World, order: Snapshot) -> None:
    """An order has ended as its steps have (SCH-8, SCH-12, UND-5).

    No step has failed for which nothing follows.
    """
    state, steps = order.state, {step.name: step.state for step in order.steps}
    standing = [step.name for step in order.steps if stands(step)]
    known = world.deployed.workflows.find(state.workflow, state.workflow_version)
    gone = known is None or world.deployed.known
    if state.process_state is ProcessState.PROCESSED:
        demand(
            set(steps.values()) <= {StepState.COMPLETED, StepState.SKIPPED},
            f"the order is Processed: {steps}",
        )
    if state.process_state is ProcessState.ERROR:
        holds = {
            Outcome.FAILED: order.in_state(StepState.FAILED) or gone,
            Outcome.UNDONE: not standing,
            Outcome.UNDO_INCOMPLETE: standing,
        }
        demand(holds[state.outcome], f"the order is called {state.outcome}: {steps}")


def _over_for_good(world: World) -> None:
    """What was processed, or undone completely, is never touched again."""
    transitions = [
        world.rows[history_key(world.order_id, number)][1]
        for number in range(1, world.state().version + 1)
    ]
    over = [entry.event for entry in transitions[:-1] if entry.event in {"processed", "undone"}]
    same = transitions[-1].event in {"erased", "restored"}  # what it did is as before
    demand(same or not over, f"“{transitions[-1].event}” although the order was {over}")


def _nothing_stands_half_done(world: World, order: Snapshot) -> None:
    """What an order says of its end is true at the remote services."""
    at_services = [step for step in order.steps if step.capability != OUTSIDE]
    counted = [step for step in at_services if step.state is not StepState.SKIPPED]
    keys = {_key(world, step, step.round) for step in counted}
    undone = {key for key in keys if f"{key} undo" in world.effects}
    if order.state.process_state is ProcessState.PROCESSED:
        done = {key for key in keys if f"{key} do" in world.effects}
        demand(done == keys, f"the order is Processed, but not done: {keys - done}")
        # An undo that came after the copy is not known any more, as docs/disaster.md says.
        demand(world.restored or not undone, f"the order is Processed, but undone: {undone}")
    _not_turned_back(world, order)
    if order.state.outcome is Outcome.UNDONE:
        counted += [step for step in order.in_state(StepState.SKIPPED) if step.goes_on]
        standing = {step.name: _standing(world, step) for step in counted if step.undoable}
        demand(
            not any(standing.values()),
            f"the order is called undone, but these rounds stand: {standing}",
        )


def _not_turned_back(world: World, order: Snapshot) -> None:
    """No order goes back once a point of no return was done (UND-6)."""
    done = [step.name for step in order.steps if step.pivot and _standing(world, step)]
    back = order.state.direction is Direction.UNDO
    demand(not (back and done), f"the order goes back, though {done} was done (UND-6)")


def _judged_once(world: World) -> None:
    """A step that was begun is not called unneeded later (SCH-14)."""
    begun: set[str] = set()
    for each in (each for entry in world.history() for each in entry.happened):
        begun |= {each.step} if isinstance(each, StepStarted) else set()
        unneeded = isinstance(each, NotNeeded) and each.step in begun
        demand(not unneeded, f"begun, and then “{each.words}” (SCH-14)")


def _answered_once(world: World) -> None:
    """An answer from outside completes its step once (ANS-3)."""
    happened = (each for entry in world.history() for each in entry.happened)
    answered = [each.step for each in happened if isinstance(each, Answered)]
    demand(len(answered) == len({*answered}), f"answered more than once: {answered} (ANS-3)")


def _begun_in_time(world: World, order: Snapshot) -> None:
    """No step begins before the time that its workflow says (SCH-15), or its order (SUB-9)."""
    state, date = order.state, order.order.not_before
    workflow = world.deployed.workflows.find(state.workflow, state.workflow_version)
    timed = {each.name: each for each in workflow.steps if each.begins} if workflow else {}
    for entry in world.history():
        begun = {each.step for each in entry.happened if isinstance(each, StepStarted)}
        times = {name: _time_of(order, timed[name]) for name in begun & timed.keys()}
        early = [name for name, time in times.items() if time and entry.at < time]
        demand(not early, f"begun before its time: {early} (SCH-15)")
        starts = (each for each in entry.happened if isinstance(each, StepStarted))
        forward = {each.step for each in starts if not each.undo}
        demand(
            not (forward and date and entry.at < date),
            f"begun before the time of the order: {sorted(forward)} (SUB-9)",
        )


def _time_of(order: Snapshot, definition: StepDefinition) -> datetime | None:
    return definition.begins(order.order, results_for(to_new(order), definition))


def _one_round_stands(world: World, order: Snapshot) -> None:
    """At most one round of a step stands, or may.

    A round begins where the one before is nothing (AGT-3).
    """
    for step in order.steps:
        unknown = {step.round} if step.effect_unknown or step.runs else set()
        rounds = _standing(world, step) | unknown
        demand(len(rounds) <= 1, f"of {step.name} these rounds stand, or may: {rounds} (AGT-3)")


def _standing(world: World, step: Step) -> set[int]:
    """The rounds of a step that happened at the remote services, and were not undone."""
    rounds = step.round + 1 + world.restored  # one that began after the copy is not known any more
    keys = {number: _key(world, step, number) for number in range(rounds)}
    return {
        number
        for number, key in keys.items()
        if f"{key} do" in world.effects and f"{key} undo" not in world.effects
    }


def _key(world: World, step: Step, number: int) -> str:
    """The idempotency key of a round of a step: the shipped code is not asked."""
    return f"{world.order_id}:{step.name}{f':{number}' if number else ''}"


def _not_lost(world: World) -> None:
    begun = (handler.job for handler in world.handlers.values())
    on_its_way: tuple[Sent | Job, ...] = (*world.queue, *begun, *world.to_come)
    submitted = [each.body for each in on_its_way if each.kind == "submission"]
    here = any(world.order_id in body for body in submitted)
    demand(here or world.poison, "the order was accepted, and is nowhere")


def _numbered_without_gaps(world: World, order: Snapshot) -> None:
    for version in range(1, order.state.version + 1):
        demand(
            history_key(world.order_id, version) in world.rows, f"version {version} has no history"
        )
    beyond = history_key(world.order_id, order.state.version + 1)
    demand(beyond not in world.rows, "the history is ahead of the state")


def _handled_by_one(world: World, order: Snapshot) -> None:
    """Claims and what ends them alternate.

    `LockedBy` says who handles the order, and nothing while nobody does.
    """
    waits = any(step.capability == OUTSIDE for step in order.steps)
    held: bool | None = False
    for entry in world.history():
        if held is not None and (entry.event == "claimed" or entry.event in GIVES_BACK):
            whose = "a scheduler" if held else "nobody"
            demand(held == (entry.event != "claimed"), f"“{entry.event}” while {whose} had it")
        if entry.event == "claimed" or entry.event in GIVES_BACK | ENDS:
            held = entry.event == "claimed"
        elif (waits and _is_of_people(entry)) or entry.actor == OVER_LINK:
            held = None  # nobody holds what only waited for an answer: it may be given back
    is_handled = order.state.process_state is ProcessState.PROCESSING
    demand(held in (None, is_handled), f"{order.state.process_state}, held: {held}")
    locked = order.state.locked_by
    demand(
        (locked is not None) == bool(is_handled and at_work(order)),
        f"{order.state.process_state} and at work: {at_work(order)}, but LockedBy is {locked}",
    )


def _is_of_people(entry: HistoryEntry) -> bool:
    return entry.actor.startswith("operator/") or entry.actor == CUSTOMER


def _shown_as_it_is(order: Snapshot) -> None:
    running, state = order.running(), order.state
    if state.process_state is ProcessState.PROCESSING:
        demand(running, "the order is Processing, but no step runs")
        demand(
            state.complete_by == order.earliest_complete_by(),
            "CompleteBy is not the earliest of the steps'",
        )
        back = state.direction is Direction.UNDO or order.in_state(StepState.FAILED)
        held_up = back and not at_work(order)
        demand(not held_up, "the end of the order waits for an answer from outside (SCH-12)")
    elif state.process_state is ProcessState.PENDING:
        dates = [step.retry_by for step in _to_be_tried(order) if step.retry_by]
        demand(
            state.complete_by == max(dates, default=None),
            f"CompleteBy {state.complete_by} is not that of the last retry: {dates} (SUP-3)",
        )
    else:
        demand(
            state.complete_by is None,
            f"the order is {state.process_state}, and CompleteBy is {state.complete_by}",
        )
        demand(
            not running, f"a step runs, and nobody looks at it: the order is {state.process_state}"
        )
    both = order.in_state(StepState.RUNNING) and any(
        step.runs and step.state is StepState.UNDOING for step in running
    )
    demand(not both, "a step is being undone while another is being done")


def _to_be_tried(order: Snapshot) -> list[Step]:
    """The steps that wait for an attempt; after a failure none does on the way forward (SCH-12)."""
    back = order.state.direction is Direction.UNDO
    if not back and order.in_state(StepState.FAILED):
        return []
    state = StepState.UNDOING if back else StepState.NOT_STARTED
    return [step for step in order.steps if step.state is state and not step.complete_by]


def _owed_as_it_is(world: World, order: Snapshot) -> None:
    stored = {key for key in world.agenda() if not key.startswith(Kind.OUTBOX)}
    owed = set(_owed(world, order))
    demand(stored == owed, f"the agenda holds {sorted(stored)}, owed is {sorted(owed)}")
    for row in (world.agenda()[key] for key in owed):
        said = {name: row.data.get(name) for name in ACTED_ON}
        demand(said == _acted_on(order), f"{row.key} says {said} of {_acted_on(order)}")


def _acted_on(order: Snapshot) -> dict[str, object]:
    """What rows of the agenda say that others go by.

    They say who waits since when, for whom, and where there is room.
    """
    state = order.state
    agents = " ".join(step.agent for step in at_work(order))
    times = (state.not_before, state.waits_since, state.updated_at)
    said = (agents or None, *times, state.workflow, state.workflow_version)
    return dict(zip(ACTED_ON, said, strict=True))


def _owed(world: World, order: Snapshot) -> Iterator[str]:
    """What is owed to an order, read off its records here once more.

    The shipped code is not asked.
    """
    state = order.state
    due = [step.complete_by for step in at_work(order)]
    waits = [step.complete_by for step in awaited(order)]
    if may_go_on(order, world.deployed.workflows):
        turn = ready(order, world.deployed.workflows)
        first = min(turn, key=partial(_turn_of, order), default=None)
        need = first.capability if first and first.capability != OUTSIDE else "-"
        rank = {"high": 0, "normal": 1}[state.priority]
        place = (
            f"later|{sortable(state.not_before)}"
            if state.not_before and not _pauses(order, turn)
            else sortable(state.waits_since)
        )
        yield f"!pending|{rank}|{need}|{place}|{state.order_id}"
    if due:
        yield f"!running|{sortable(min(due))}|{state.order_id}"
    if waits and not state.held_since:
        yield f"!waiting|{sortable(min(waits))}|{state.order_id}"
    if state.process_state is ProcessState.ERROR and state.outcome is not Outcome.UNDONE:
        yield f"!error|{sortable(state.updated_at)}|{state.order_id}"
    if state.held_since:
        yield f"!held|{sortable(state.held_since)}|{state.order_id}"


def _turn_of(order: Snapshot, step: Step) -> tuple[datetime, bool]:
    """From when on a step waits, and whether for an agent; an answer from outside comes first.

    Of steps that are alike the first one of the workflow names the need.
    """
    return step.not_before or order.state.waits_since, step.capability != OUTSIDE


def _begins_at(order: Snapshot, step: Step) -> datetime | None:
    """When a step may begin: the later of its own time and the order's, which no undo waits for."""
    of_order = order.order.not_before if order.state.direction is Direction.FORWARD else None
    return max(filter(None, (step.not_before, of_order)), default=None)


def _pauses(order: Snapshot, turn: Collection[Step]) -> bool:
    """Whether the first date of these steps is a pause between two attempts (SCH-16)."""
    dates = [(date, step) for step in turn if (date := _begins_at(order, step))]
    first = min((date for date, _ in dates), default=None)
    return any(date == first and step.uncounted and not step.answer_by for date, step in dates)


def _waits_for_nothing_else(world: World, order: Snapshot) -> None:
    """An order waits for a time only if one is to come for every step whose turn it is.

    So whoever has nothing to wait for is claimed at once: also an order that has failed (SCH-8).
    """
    state, last = order.state, [entry for entry in world.history() if entry.change_id][-1]
    now = last.at if last.event == "restored" else state.updated_at  # which is as it was
    turn = ready(order, world.deployed.workflows)
    first = min((_begins_at(order, step) or now for step in turn), default=now)
    chosen = first if first > now else None
    demand(
        state.not_before == chosen,
        f"the order waits until {state.not_before}; its steps wait until {chosen}",
    )


def _attempts_counted_once(world: World, order: Snapshot) -> None:
    claims = 0
    for entry in world.history():
        begins = any(isinstance(each, StepStarted) for each in entry.happened)
        claims += entry.event == "claimed" or (entry.event == "not-tried" and begins)
    attempts = sum(step.attempts for step in order.steps)
    single = len(order.steps) == 1 and order.state.direction is Direction.FORWARD
    demand(
        not single or attempts == claims,
        f"{attempts} attempts, though the order was claimed {claims} times",
    )


def _failures_counted_once(change: OldChange) -> None:
    """What expires at the same time counts once, until the order begins afresh (SUP-3)."""
    before, after = (each.state.failure_count for each in (change.before, change.after))
    if change.entry.event in {"resubmitted", "skipped", "renewed", "settled"}:
        demand(after == 0, f"FailureCount {after} of an order that was {change.entry.event}")
    else:
        most = change.entry.actor.startswith("supervisor/")
        demand(0 <= after - before <= most, f"FailureCount {before}, then {after}")


def _counted_by_the_rules(change: OldChange, after: Step) -> None:
    """Each expiry of a step counts once, until it begins afresh.

    A full count makes it rest, or fail (SUP-3, SUP-4).
    """
    before = change.before.step(after.name)
    charged = _expired(change, before) and _expiries(after) > _expiries(before)
    again = before.state is StepState.FAILED and after.state not in (
        StepState.FAILED,
        StepState.SKIPPED,
        StepState.COMPLETED,
    )
    again = again or _asked_anew(change, before)
    mended = again and change.entry.actor.startswith("operator/")
    afresh = mended or after.state is StepState.UNDOING is not before.state
    expiries = 0 if afresh else _expiries(before) + bool(charged)
    demand(
        _expiries(after) == expiries,
        f"{after.name} counts {_expiries(after)} expiries, and had {expiries}",
    )
    forward = change.after.state.direction is Direction.FORWARD
    tried_again = after.state is StepState.UNDOING or (forward and after.state in OPEN)
    full = after.failure_count >= after.threshold
    demand(
        not (full and tried_again),
        f"{after.name} is {after.state} after {after.failure_count} failures",
    )
    demand(
        after.cooldowns <= after.max_cooldowns,
        f"{after.name} rests for the {after.cooldowns}th time",
    )


def _asked_anew(change: OldChange, before: Step) -> bool:
    """Whether an order goes on from Error whose answer from outside was withdrawn (SCH-12)."""
    was, now = change.before.state, change.after.state
    goes_on = was.process_state is ProcessState.ERROR is not now.process_state
    waited = before.capability == OUTSIDE and before.state is StepState.NOT_STARTED
    return goes_on and now.direction is Direction.FORWARD and waited


def _expired(change: OldChange, before: Step) -> bool:
    """Whether a supervisor says that the time of the step's attempt is up."""
    is_over = before.complete_by and not change.after.step(before.name).complete_by
    by_supervisor = change.entry.actor.startswith("supervisor/")
    return bool(by_supervisor and is_over and not _withdrawn(change, before))


def _withdrawn(change: OldChange, before: Step) -> bool:
    """Whether an answer from outside is awaited no longer, since the order goes another way."""
    after = change.after.step(before.name)
    waited = before.runs and before.capability == OUTSIDE
    same = after.failure_count == before.failure_count and after.cooldowns == before.cooldowns
    return waited and after.state is StepState.NOT_STARTED and same


def _request_of(order: Snapshot, step: Step) -> str:
    action = "undo" if step.state is StepState.UNDOING else "do"
    return request_id(order.order_id, step.name, step.attempts, action)


def check_charged(handler: Handler, change: OldChange) -> None:
    """Check that an attempt is charged if, and only if, an agent said that it began it (SUP-3)."""
    if handler.job.kind != "sweep" or change.before is None:
        return
    heard = [row for answer in handler.log for row in health_in(answer)]
    said = {request for row in heard for request in row.begun}
    over = [step for step in change.before.running() if _expired(change, step)]
    expired = {
        step.name: step.capability == OUTSIDE or _request_of(change.before, step) in said
        for step in over
    }
    counted = change.after.state.failure_count - change.before.state.failure_count
    demand(
        counted == any(expired.values()), f"{counted} failures counted; begun: {expired} (SUP-3)"
    )
    for name, begun in expired.items():
        before, after = change.before.step(name), change.after.step(name)
        taken_back = (
            change.after.state.direction is Direction.UNDO and before.state is StepState.RUNNING
        )
        charged = _expiries(after) > _expiries(before)
        demand(
            taken_back or charged == begun, f"{name} is charged: {charged}, begun: {begun} (SUP-3)"
        )


def check_blamed(handler: Handler, change: OldChange) -> None:
    """Check that only a fault of a step's own service requests the undo, and does (SUP-3).

    What a gateway turned away is for an operator, whatever becomes of other requests.
    """
    if handler.job.kind != "sweep" or change.before is None:
        return
    faults = [fault for answer in handler.log for row in health_in(answer) for fault in row.faults]
    at_door = {request for fault in faults if fault.at_door for request in fault.requests}
    over = [step for step in change.before.at_work() if _expired(change, step)]
    turned_away = {step.name for step in over if _request_of(change.before, step) in at_door}
    failed = [
        step
        for step in change.after.in_state(StepState.FAILED)
        if step.name in _names(over) and step.on_failure is OnFailure.UNDO
    ]
    blamed = _names(failed) & turned_away - _names(filter(_is_for_operator, failed))
    demand(not blamed, f"{blamed} was turned away, and the order is undone for it (SUP-3)")
    asks = _names(failed) - turned_away
    ended = [each for each in change.entry.happened if isinstance(each, Ended)]
    stays = ended and not change.after.passed_pivots()
    demand(
        not (asks and stays), f"{asks} failed at its service, and the order is not undone (SUP-3)"
    )


def _is_for_operator(step: Step) -> bool:
    return step.for_operator


def check_undo(handler: Handler, change: OldChange) -> None:
    """Check that a supervisor undoes no order: it leaves that to a scheduler (SUP-6)."""
    if handler.job.kind != "sweep" or change.before is None:
        return
    was, now = change.before.state.direction, change.after.state.direction
    over = _names(step for step in change.before.running() if _expired(change, step))
    known = _names(change.before.in_state(StepState.UNDOING))
    begun = _names(change.after.in_state(StepState.UNDOING)) - known - over
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
    return step.cooldowns * step.threshold + step.failure_count


def _alerted_once(world: World) -> None:
    """One alert for each time that the order ended in `Error`: sent, or owed (ALR-1)."""
    failed = [
        entry for entry in world.history() if entry.event in {"failed", "undone", "undo-incomplete"}
    ]
    owed = [row.data for row in unsent(world) if row.data["To"] == OPERATORS]
    waiting = {each["EventId"] for each in owed if each["Type"] in OF_ENDS}
    alerts = waiting | world.published
    demand(len(alerts) == len(failed), f"{len(failed)} times Error, {len(alerts)} alerts")


def check_commit(world: World, change: OldChange) -> None:
    """Check a write at the moment at which the store carries it out."""
    stored = world.order()
    if change.before is None or stored is None:
        demand(stored is None, "an order was written over a recorded one")
        return
    demand(
        change.before.state.version == stored.state.version, "a change was written over another one"
    )
    _nothing_begun_after_a_failure(change)
    _nothing_begun_while_it_is_held(change)
    _nothing_done_again(change)
    _deadlines_move_by_the_time_held(change)
    _cancelled_in_time(world, change)
    for step in change.before.steps:
        _answered_in_its_time(change, step)
    _by_one_who_knows_it(world, change)
    _out_of_error_by_people(change)
    check_alert(change)
    _comes_to_something(change)
    _tells_what_changed(change)
    _keeps_its_place(world, change)
    _failures_counted_once(change)
    for step in change.after.steps:
        _attempted_by_the_rules(world, change, step)
        _counted_by_the_rules(change, step)
    for step in change.before.running():
        _over_in_time(world, change, step)


def _over_in_time(world: World, change: OldChange, step: Step) -> None:
    """An attempt ends by a reply in its time, or by a supervisor after it (SCH-6, SUP-2)."""
    now, actor = change.after.step(step.name), change.entry.actor
    if now and now.runs and now.attempts == step.attempts:
        return  # this change is not about it
    by_supervisor = actor.startswith("supervisor/")
    if now and actor == OVER_LINK:
        return  # it counts until somebody has given up (ANS-2)
    if step.capability == OUTSIDE and ((now and not by_supervisor) or _withdrawn(change, step)):
        return  # its deadline is when somebody is to give up, and no end of what counts
    if by_supervisor:  # whatever its own clock says (FLT-9)
        demand(world.now > step.complete_by, "a step was called expired whose time had not passed")
        _due_again(change, step.name)
    else:
        named = [getattr(each, "step", None) for each in change.entry.happened]
        demand(step.name in named, f"an attempt of {step.name} ended without a reply (SCH-2)")
        in_time = change.entry.at <= step.complete_by + world.deployed.tolerance
        demand(in_time, f"a reply of {step.name} counted that came too late")


def _due_again(change: OldChange, name: str) -> None:
    """A step that is tried again says by when that attempt should be over (SUP-3).

    The request to undo the order is another thing: what is undone then is not tried again.
    """
    if change.before.state.direction is not change.after.state.direction:
        return
    for step in _to_be_tried(change.after):
        by = (step.not_before or change.entry.at) + step.timeout
        right = step.name != name or step.retry_by == by
        demand(right, f"{name} is tried again by {step.retry_by}, and not by {by} (SUP-3)")


def _out_of_error_by_people(change: OldChange) -> None:
    """What has failed stays so until an operator acts, or the customer cancels it (SUB-8)."""
    out = (
        change.before.state.process_state
        is ProcessState.ERROR
        is not change.after.state.process_state
    )
    actor = change.entry.actor
    by_people = actor.startswith("operator/") or actor == CUSTOMER
    demand(not out or by_people, f"{actor} took the order out of Error")


def _comes_to_something(change: OldChange) -> None:
    """A claim begins something, or ends it; else it would write nothing (SCH-2)."""
    if change.entry.event in {"claimed", "step-started"}:
        begun = [step for step in change.after.running() if step not in change.before.running()]
        demand(begun, f"“{change.entry.event}”, and nothing has begun")


def _tells_what_changed(change: OldChange) -> None:
    """The history tells of each attempt that begins, each step done or undone, and each end."""
    before, after = change.before, change.after
    was = {step.name: step for step in before.steps}
    moved = [step for step in after.steps if step.state is not was[step.name].state]
    begun = {step.name for step in after.running() if step.attempts > was[step.name].attempts}
    done = {step.name for step in moved if step.state is StepState.COMPLETED}
    undone = {step.name for step in moved if step.state is StepState.UNDONE}
    told_done = StepCompleted | Answered | Settled
    expected: dict[Any, set[str]] = {StepStarted: begun, told_done: done, StepUndone: undone}
    happened: tuple[Any, ...] = tuple(change.entry.happened)
    for kind, names in expected.items():
        told = {each.step for each in happened if isinstance(each, kind)}
        demand(told >= names, f"{kind} of {names}, and the history tells of {told}")
    ended = (
        after.state.process_state in ENDED
        and after.state.process_state is not before.state.process_state
    )
    ends = [each.what for each in change.entry.happened if isinstance(each, Processed | Ended)]
    how = [after.state.outcome or "processed"] if ended else []
    demand(ends == how, f"the order ends as {how}, and the history tells {ends}")


def _settled(order: Snapshot) -> list[str]:
    return [step.name for step in order.steps if step.state not in WAITS]


def _keeps_its_place(world: World, change: OldChange) -> None:
    """An order goes to the end of its queue when something has come of it (SCH-11).

    So it does when somebody has acted on it.
    """
    before, after, now = change.before, change.after, change.entry.at
    settled = _settled(before) != _settled(after)
    turned = before.state.direction is not after.state.direction
    released = before.state.held_since and not after.state.held_since
    ended = (each.state.process_state in ENDED for each in (before, after))
    anew = settled or turned or released or tuple(ended) == (True, False)
    pauses = _pauses(after, ready(after, world.deployed.workflows))
    until = None if pauses else after.state.not_before
    place = until or (now if anew else min(before.state.waits_since, now))
    demand(
        after.state.waits_since == place,
        f"“{change.entry.event}”: waits since {after.state.waits_since}: {place}",
    )


def _attempted_by_the_rules(world: World, change: OldChange, after: Step) -> None:
    """Attempts grow by one, take their timeout, and begin when they may (SUP-3, UND-2)."""
    before, now = change.before.step(after.name), change.entry.at
    begun = after.attempts - before.attempts
    demand(begun in (0, 1), f"{after.name}: attempt {before.attempts}, then {after.attempts}")
    if not begun:
        return
    demand(
        after.attempts <= world.deployed.most_attempts,
        f"{after.name} is tried for the {after.attempts}th time",
    )
    _stays_where_its_key_is_known(world, before, after)
    _apart_from_the_last(world, change, after)
    demand(
        after.complete_by == now + after.timeout,
        f"{after.name} has until {after.complete_by}, begun at {now}",
    )
    late = change.entry.event == "claimed" or before.complete_by is None
    demand(
        not late or (before.not_before or now) <= now,
        f"{after.name} begun before {before.not_before}",
    )
    if after.state is StepState.UNDOING and after.late_effect_window:
        until = _tried_at(world, after) + after.timeout + world.deployed.tolerance
        settled = until + after.late_effect_window
        demand(
            now >= settled,
            f"{after.name} undone at {now}; a call may take effect until {settled} (UND-2)",
        )


def _apart_from_the_last(world: World, change: OldChange, after: Step) -> None:
    """What has counted as no failure is repeated after a pause that grows (SCH-16)."""
    before = [each for entry in world.history() for each in entry.happened]
    uncounted = _uncounted([*before, *change.entry.happened], after)
    began = max((entry.at for entry in world.history() if _begins(entry, after)), default=NEVER)
    if uncounted:
        least = timedelta(seconds=min(2 ** (uncounted - 1) / 4, 300))
        demand(
            change.entry.at >= began + least,
            f"{after.name} begun at {began}, and again at {change.entry.at} (SCH-16)",
        )


def _begins(entry: HistoryEntry, step: Step) -> bool:
    return any(isinstance(each, StepStarted) and each.step == step.name for each in entry.happened)


def _uncounted(events: Sequence[Any], after: Step) -> int:
    """How many attempts of one kind have counted as no failure since anything else came of it."""
    undo, count, ends = after.state is StepState.UNDOING, 0, 0
    for each in reversed(events):
        if isinstance(each, ActedOn | Renewed | UndoRequested):
            break
        if getattr(each, "step", None) != after.name:
            continue
        if isinstance(each, StepStarted) and each.undo is undo:
            count, ends = count + ends, 0
        elif _is_uncounted(each):
            ends += 1
        else:
            break
    return count


def _is_uncounted(each: Any) -> bool:
    return isinstance(each, NotTried | Accepted) or (
        isinstance(each, Expired) and each.failure is None
    )


def _tried_at(world: World, step: Step) -> datetime:
    """When the last attempt to do the step began, as the history tells."""

    def begins(each: Any) -> bool:
        return isinstance(each, StepStarted) and each.step == step.name and not each.undo

    return max(
        (entry.at for entry in world.history() if any(map(begins, entry.happened))), default=NEVER
    )


def _stays_where_its_key_is_known(world: World, before: Step, after: Step) -> None:
    """What may have been done is tried again, and undone, where its key is known (AGT-3)."""
    at_service = before.attempts and before.capability != OUTSIDE
    if at_service and (before.effect_unknown or after.state is StepState.UNDOING):
        asked, now = (world.deployed.providers[step.agent] for step in (before, after))
        demand(
            asked == now, f"{after.name} may have been done at {asked}, and goes to {now} (AGT-3)"
        )


def check_answered(handler: Handler, change: OldChange) -> None:
    """Check what a reply changes: the step that it names, at its current attempt (SCH-6)."""
    if handler.job.kind != "reply" or change.before is None:
        return
    reply = decode(AgentReply, handler.job.body)
    named = (reply.order_id, reply.step, reply.attempt, handler.job.agent)
    answered = [step for step in at_work(change.before) if step not in change.after.steps]
    others = [
        step.name
        for step in answered
        if (change.after.order_id, step.name, step.attempts, step.agent) != named
    ]
    demand(
        not others, f"a reply to attempt {reply.attempt} of {reply.step} changed {others} (SCH-6)"
    )
    _keeps_the_pause(change, reply)


def _keeps_the_pause(change: OldChange, reply: AgentReply) -> None:
    """A step waits for as long as its agent says, unless that is one instance's circuit (AGT-8)."""
    turned = reply.action == "do" and change.after.state.direction is Direction.UNDO
    named = reply.outcome == "notTried" and not reply.circuit_open and reply.retry_after
    if named and not turned:
        until = change.entry.at + timedelta(seconds=named)
        step = change.after.step(reply.step)
        kept = step.attempts == reply.attempt and (step.not_before or NEVER) >= until
        demand(kept, f"{reply.step} waits until {step.not_before}, and not until {until} (AGT-8)")


def _nothing_begun_after_a_failure(change: OldChange) -> None:
    ran = {(step.name, step.attempts) for step in change.before.running()}
    now = (step for step in change.changed_steps() if step.state is StepState.RUNNING)
    begun = [step.name for step in now if (step.name, step.attempts) not in ran]
    failed = change.after.in_state(StepState.FAILED)
    demand(not (begun and failed), f"{begun} begun although another step has failed (SCH-12)")


def _nothing_begun_while_it_is_held(change: OldChange) -> None:
    """What runs while an order is held ran before (OPR-7)."""
    ran = {(step.name, step.attempts) for step in change.before.steps}
    begun = [step.name for step in change.after.steps if (step.name, step.attempts) not in ran]
    demand(
        not (begun and change.before.state.held_since),
        f"{begun} begun although the order is held (OPR-7)",
    )


def _deadlines_move_by_the_time_held(change: OldChange) -> None:
    """What is awaited has the time that it had when the order was held, and counts none (OPR-7)."""
    since = change.before.state.held_since
    if since is None:
        return
    by = change.entry.at - since if change.entry.event == "released" else timedelta()
    for step in awaited(change.before):
        after = change.after.step(step.name)
        demand(
            not after.runs or after.complete_by == step.complete_by + by,
            f"{step.name} was due {step.complete_by}, and is {after.complete_by}: "
            f"the deadline moves by the time held, {by} (OPR-7)",
        )
        counted = after.failure_count - step.failure_count
        demand(counted <= 0, f"{step.name} counts a failure while the order is held (OPR-7)")


def check_held(handler: Handler, change: OldChange) -> None:
    """Check that a scheduler sends nothing to an agent that was held at its last look (OPR-9)."""
    if change.before is None:
        return
    heard = next((health_in(each) for each in reversed(handler.log) if is_health(each)), [])
    ran = {(step.name, step.attempts) for step in change.before.running()}
    begun = [step for step in change.after.running() if (step.name, step.attempts) not in ran]
    held = [step.agent for step in begun if hold_of(heard, step.agent, change.entry.at)]
    demand(not held, f"“{change.entry.event}” sends requests to {held}, which is held (OPR-9)")


def _cancelled_in_time(world: World, change: OldChange) -> None:
    """A customer cancels until the step begins that the door names (SUB-8)."""
    if change.entry.actor != CUSTOMER:
        return
    until = world.deployed.door_of(change.before.state.workflow).cancel_until
    step = change.before.step(until)
    demand(not step.attempts, f"a customer cancels, and {until} has begun (SUB-8)")


def _answered_in_its_time(change: OldChange, before: Step) -> None:
    """An answer counts, early or late, until somebody has given up, and never later (ANS-2)."""
    after, was = change.after.step(before.name), change.before.state
    if before.capability != OUTSIDE or after.state is before.state:
        return
    if after.state is StepState.COMPLETED:
        over = was.process_state in ENDED or was.direction is Direction.UNDO
        demand(
            before.state in OPEN and not over,
            f"{before.name} was {before.state} in an order that was {was.process_state}, "
            f"{was.direction}, and is Completed (ANS-4)",
        )
        asked = change.entry.actor.partition("/")[0]
        demand(asked == "operator", f"{asked} has completed {before.name} (ANS-1)")


def _nothing_done_again(change: OldChange) -> None:
    """What is completed is only ever undone (SCH-9)."""
    completed = {step.name for step in change.before.in_state(StepState.COMPLETED)}
    again = completed.intersection(step.name for step in change.after.in_state(*OPEN))
    demand(not again, f"{again} completed, and to be done again (SCH-9)")


def _by_one_who_knows_it(world: World, change: OldChange) -> None:
    """A scheduler leaves alone what is newer than it knows: workflows, and providers (FLT-12)."""
    role, _, slot = change.entry.actor.partition("/")
    if role != "scheduler":
        return
    demand(
        not _is_newer(change.before, world.deployed.known_to(slot)),
        f"{slot} changed an order that it does not know",
    )
    given_up = (step for step in change.after.in_state(StepState.FAILED) if step.provider)
    of_others = [step.name for step in given_up if not world.deployed.has_agent(slot, step.agent)]
    demand(not of_others, f"{slot} gave up {of_others}, whose provider it does not know (FLT-12)")


def _is_newer(order: Snapshot, known: Workflows) -> bool:
    versions = [each.version for each in known.all if each.name == order.state.workflow]
    return order.state.workflow_version > max(versions, default=0)


def check_note(world: World, handler: Handler, note: Note) -> None:
    """Check what is only noted: no reply that counts (SCH-6)."""
    order = world.order()
    if handler.job.kind != "reply" or order is None:
        return
    answered = decode(AgentReply, handler.job.body)
    step = order.step(answered.step)
    known = world.deployed.known_to(handler.slot)
    if known.was_retired(order.state.workflow, order.state.workflow_version):
        return
    runs = (
        step
        and step.complete_by
        and (step.agent, step.attempts) == (handler.job.agent, answered.attempt)
    )
    right = runs and (step.state is StepState.UNDOING) == (answered.action == "undo")
    counts = right and note.entry.at <= step.complete_by + world.deployed.tolerance
    demand(not counts, f"a reply that counts was refused: {note.entry.detail} (SCH-6)")


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
    told: Any = Answered | StepFailed | RefusedEarly
    if handler.job.kind in CALLS_BACK:  # its agent may have told it before
        told |= StepCompleted
    happened = (each for entry in world.history() for each in entry.happened)
    recorded = any(isinstance(each, told) and each.step == step.name for each in happened)
    demand(recorded, f"{handler.job.kind} is said to be recorded, and {step.name} is {step.state}")


def check_read(world: World, handler: Handler, effect: Effect) -> None:
    """Check a look at the store: who sweeps has the lease at each page (SUP-5).

    It is no fence for what follows.
    """
    if handler.job.kind == "sweep" and effect.name == "agenda":
        held = world.lease is not None and world.lease[0] == handler.slot
        demand(held, f"{handler.slot} looks for overdue orders without the lease (SUP-5)")


def check_call(world: World, request: AgentRequest) -> None:
    """Check what is about to happen at a service: in the order of steps, or in reverse (UND-1)."""
    order = world.order()
    if order is None:
        return
    known, state = world.deployed.workflows, order.state
    workflow = known.find(state.workflow, state.workflow_version)
    if workflow is None:
        return
    said = {step.name for step in order.in_state(StepState.COMPLETED) if step.capability == OUTSIDE}
    skipped = {step.name for step in order.in_state(StepState.SKIPPED)} | said
    done, undone = _steps(world, "do"), _steps(world, "undo")
    if world.restored and not _is_under_way(order, request):
        return  # it was sent before the order was restored, and what had led to it is not known
    if request.action == "do":
        definition = workflow.definition(request.step)
        before = set(definition.after if definition else ())
        demand(done | skipped >= before, f"{request.step} begins before {before - done} (SCH-10)")
    else:
        to_undo = {each.name for each in workflow.steps if each.compensation is not None}
        standing = (done - undone - skipped) & dependents(workflow, request.step) & to_undo
        demand(not standing, f"{request.step} is undone while {standing} stands (UND-1)")


def _is_under_way(order: Snapshot, request: AgentRequest) -> bool:
    step = order.step(request.step)
    return step is not None and step.runs and step.attempts == request.attempt


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


def is_true(world: World, order: Snapshot, kind: str) -> bool:
    """Whether an operator who has found out would say this, where keys are forgotten."""
    if not any(agent.keys_last for agent in world.deployed.agents.values()):
        return True
    stands = any(_standing(world, step) for step in order.in_state(StepState.FAILED))
    back = order.state.direction is Direction.UNDO
    return {"renew": not stands, "skip": stands is not back}.get(kind, True)


def found_out(world: World, order: Snapshot) -> tuple[Step, bool]:
    """The first step in doubt, and whether an operator finds at its service that it was done."""
    step = next(each for each in order.steps if each.effect_unknown and each.capability != OUTSIDE)
    return step, bool(_standing(world, step))


def _steps(world: World, action: str) -> set[str]:
    """The steps of which this has happened."""
    found = (effect.split(" ") for effect in world.effects)
    return {key.split(":")[1] for key, done in found if done == action}


def check_effect(world: World, handler: Handler, effect: Effect) -> None:
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
    first = step.round if step.runs and request.attempt == step.attempts else 0
    keys = [_key(part, step, number) for number in range(first, step.round + 1)]
    demand(
        request.idempotency_key in keys,
        f"idempotency key {request.idempotency_key} for {keys} (AGT-3)",
    )


def _submitted_as_recorded(note: Note) -> None:
    """Check that no submission is refused as another one: here each is sent again as it was."""
    refused = any(isinstance(each, SubmissionRefused) for each in note.entry.happened)
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
        step and step.attempts >= request.attempt,
        "a request goes out that is not recorded as running (SCH-3)",
    )


def has_ended(world: World) -> bool:
    """Whether the order is at an end, or is held, so that only an operator can make a beginning.

    Also if it was never recorded.
    """
    state = world.state()
    if state is None:
        return bool(world.poison)
    return state.process_state in ENDED or state.held_since is not None


def check_end(world: World) -> None:
    """Check a state in which nothing happens by itself: orders have ended, and nothing is owed.

    But an operator, if it is in `Error` and was not undone.
    """
    for part in world.each():
        _check_end(part)


def _check_end(world: World) -> None:
    state = world.state()
    if state is None:
        to_come = any(world.order_id in each.body for each in world.to_come)
        demand(
            world.poison or to_come, "nothing can happen any more, and the order is not recorded"
        )
        return
    demand(has_ended(world), f"nothing can happen any more, and the order is {state.process_state}")
    waits = state.process_state is ProcessState.ERROR and state.outcome is not Outcome.UNDONE
    owed = [key.split("|")[0] for key in world.agenda()]
    expected = ["!error"] * waits + ["!held"] * (state.held_since is not None)
    demand(owed == expected, f"nothing can happen any more, and this is owed: {owed}")
