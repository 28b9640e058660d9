"""What must hold in every state of every world (pattern.md, 10)."""

from collections import Counter

from adapters.writes import event_of
from core import agenda
from core.agenda import Kind
from core.changes import Change
from core.keys import history_key
from core.messages import AgentReply, AgentRequest, decode
from core.orders import Direction, Outcome, ProcessState, Snapshot, StepState
from exploration import roles
from exploration.driving import Effect
from exploration.roles import MARGIN, QUEUES, TOLERANCE
from exploration.world import World

GIVES_BACK = {"recovered", "put-back"}
ENDS = {"processed", "failed", "undone", "undo-incomplete", "undo-requested"}
"""A claim may end the order at once, so these may also come while nobody has it."""


class ViolationError(AssertionError):
    """Something that must never be."""


def demand(holds: object, what: str) -> None:
    """Raise unless it holds."""
    if not holds:
        raise ViolationError(what)


def check(world: World) -> None:
    """Check a state."""
    order = world.order()
    if order is None:
        _not_lost(world)
        return
    _numbered_without_gaps(world, order)
    _handled_by_one(world, order)
    _shown_as_it_is(order)
    _owed_as_it_is(world, order)
    _failures_counted_once(world, order)
    _alerted_once(world)
    _nothing_stands_half_done(world, order)
    _over_for_good(world)


def _over_for_good(world: World) -> None:
    """What was processed, or undone completely, is never touched again."""
    transitions = [world.rows[history_key(world.order_id, number)][1] for number in range(1, world.state().version + 1)]
    over = [entry.event for entry in transitions[:-1] if entry.event in {"processed", "undone"}]
    demand(not over, f"“{transitions[-1].event}” although the order was {over}")


def _nothing_stands_half_done(world: World, order: Snapshot) -> None:
    """What an order says of its end is true at the remote services."""
    keys = {f"{world.order_id}:{step.name}" for step in order.steps if step.state is not StepState.SKIPPED}
    undoable = {f"{world.order_id}:{step.name}" for step in order.steps if step.undoable}
    done = {key for key in keys if f"{key} do" in world.effects}
    undone = {key for key in keys if f"{key} undo" in world.effects}
    if order.state.process_state is ProcessState.PROCESSED:
        demand(done == keys, f"the order is Processed, but not done: {keys - done}")
        demand(not undone, f"the order is Processed, but undone: {undone}")
    if order.state.outcome is Outcome.UNDONE:
        standing = (done & undoable) - undone
        demand(not standing, f"the order is called undone, but this stands: {standing}")


def _not_lost(world: World) -> None:
    here = any(sent.kind == "submission" for sent in world.queue) or "submission" in world.handlers
    demand(here or world.poison, "the order was accepted, and is nowhere")


def _numbered_without_gaps(world: World, order: Snapshot) -> None:
    for version in range(1, order.state.version + 1):
        demand(history_key(world.order_id, version) in world.rows, f"version {version} has no history")
    beyond = history_key(world.order_id, order.state.version + 1)
    demand(beyond not in world.rows, "the history is ahead of the state")


def _handled_by_one(world: World, order: Snapshot) -> None:
    """Claims and what ends them alternate; `LockedBy` says who handles the order, and nothing while nobody does."""
    held = False
    for entry in world.history():
        if entry.event == "claimed" or entry.event in GIVES_BACK:
            whose = "a scheduler" if held else "nobody"
            demand(held == (entry.event != "claimed"), f"“{entry.event}” while {whose} had it")
        if entry.event == "claimed" or entry.event in GIVES_BACK | ENDS:
            held = entry.event == "claimed"
    demand(held == (order.state.locked_by is not None), f"held: {held}, but LockedBy is {order.state.locked_by}")
    demand(held == (order.state.process_state is ProcessState.PROCESSING), f"{order.state.process_state}, held: {held}")


def _shown_as_it_is(order: Snapshot) -> None:
    running, state = order.running(), order.state
    if state.process_state is ProcessState.PROCESSING:
        demand(running, "the order is Processing, but no step runs")
        demand(state.complete_by == order.earliest_complete_by(), "CompleteBy is not the earliest of the steps'")
    elif state.process_state is not ProcessState.PENDING:
        demand(not running, f"a step runs, and nobody looks at it: the order is {state.process_state}")
    both = order.in_state(StepState.RUNNING) and any(step.runs and step.state is StepState.UNDOING for step in running)
    demand(not both, "a step is being undone while another is being done")


def _owed_as_it_is(world: World, order: Snapshot) -> None:
    stored = {key for key in world.agenda() if not key.startswith(Kind.OUTBOX)}
    owed = set(agenda.obligations(order))
    demand(stored == owed, f"the agenda holds {sorted(stored)}, owed is {sorted(owed)}")


def _failures_counted_once(world: World, order: Snapshot) -> None:
    expiries, claims = 0, 0
    for entry in world.history():
        claims += entry.event == "claimed" or (entry.event == "not-tried" and "started" in entry.detail)
        if entry.event in {"resubmitted", "skipped"}:
            expiries = 0
        elif entry.actor.startswith("supervisor/"):
            expiries += 1
    demand(order.state.failure_count == expiries, f"FailureCount {order.state.failure_count} after {expiries} expiries")
    attempts = sum(step.attempts for step in order.steps)
    single = len(order.steps) == 1 and order.state.direction is Direction.FORWARD
    demand(not single or attempts == claims, f"{attempts} attempts, though the order was claimed {claims} times")


def _alerted_once(world: World) -> None:
    """One alert for each time that the order ended in `Error`: sent, or owed (ALR-1)."""
    failed = [entry for entry in world.history() if entry.event in {"failed", "undone", "undo-incomplete"}]
    waiting = {event_of(row).event_id for key, row in world.agenda().items() if key.startswith(Kind.OUTBOX)}
    alerts = waiting | world.published
    demand(len(alerts) == len(failed), f"{len(failed)} times Error, {len(alerts)} alerts")


def check_commit(world: World, change: Change, after: World) -> None:
    """Check a write at the moment at which the store carries it out."""
    del after
    stored = world.order()
    if change.before is None or stored is None:
        demand(stored is None, "an order was written over a recorded one")
        return
    demand(change.before.state.version == stored.state.version, "a change was written over another one")
    _nothing_begun_after_a_failure(change)
    for step in change.before.running():
        now = change.after.step(step.name)
        if now and now.runs and now.attempts == step.attempts:
            continue  # this change is not about it
        late = step.complete_by is not None and change.entry.at > step.complete_by + TOLERANCE
        by_supervisor = change.entry.actor.startswith("supervisor/")
        demand(by_supervisor or not late, f"a reply of {step.name} counted that came too late")
        demand(late or not by_supervisor, "a step was called expired whose time had not passed")


def _nothing_begun_after_a_failure(change: Change) -> None:
    begun = [step.name for step in change.changed_steps() if step.state is StepState.RUNNING]
    failed = change.after.in_state(StepState.FAILED)
    demand(not (begun and failed), f"{begun} begun although another step has failed (SCH-12)")


def check_call(world: World, request: AgentRequest) -> None:
    """Check what is about to happen at a remote service: in the order of dependence, and back in reverse (UND-1)."""
    order = world.order()
    workflow = roles.WORKFLOWS.find(order.state.workflow, order.state.workflow_version) if order else None
    if workflow is None:
        return
    skipped = {step.name for step in order.in_state(StepState.SKIPPED)}
    done, undone = _steps(world, "do"), _steps(world, "undo")
    if request.action == "do":
        before = set(workflow.definition(request.step).after)
        demand(done | skipped >= before, f"{request.step} begins before {before - done} (SCH-10)")
    else:
        standing = (done - undone - skipped) & workflow.dependents(request.step)
        demand(not standing, f"{request.step} is undone while {standing} stands (UND-1)")


def _steps(world: World, action: str) -> set[str]:
    """The steps of which this has happened."""
    found = (effect.split(" ") for effect in world.effects)
    return {key.rpartition(":")[2] for key, done in found if done == action}


def check_effect(world: World, slot: str, effect: Effect) -> None:
    """Check what a handler is about to do."""
    if effect.name == "call":
        _called_in_time(world, effect.args[0])
    if effect.name == "send":
        for message in effect.args[0]:
            if message.queue == QUEUES["request"]:
                _recorded_first(world, decode(AgentRequest, message.body))
            if message.queue == QUEUES["reply"]:
                _replied_in_time(world, slot, decode(AgentReply, message.body))


def _called_in_time(world: World, request: AgentRequest) -> None:
    demand(world.now < request.complete_by - MARGIN, "the service was called after the agent's time (AGT-5)")
    key = f"{world.order_id}:{request.step}"
    demand(request.idempotency_key == key, f"idempotency key {request.idempotency_key} for {key} (AGT-3)")


def _replied_in_time(world: World, slot: str, reply: AgentReply) -> None:
    del reply
    request = decode(AgentRequest, world.handlers[slot].job.body) if slot in world.handlers else None
    demand(request is None or world.now < request.complete_by, "an agent replied after the complete-by time (AGT-4)")


def _recorded_first(world: World, request: AgentRequest) -> None:
    order = world.order()
    step = order.step(request.step) if order else None
    demand(step and step.attempts >= request.attempt, "a request goes out that is not recorded as running (SCH-3)")


def check_end(world: World) -> None:
    """Check a state in which nothing can happen any more."""
    state = world.state()
    if state is None:
        demand(world.poison, "nothing can happen any more, and the order is not recorded")
        return
    ended = state.process_state in {ProcessState.PROCESSED, ProcessState.ERROR}
    demand(ended, f"nothing can happen any more, and the order is {state.process_state}")
    owed = Counter(key.split("|")[0] for key in world.agenda())
    demand(not owed - Counter({str(Kind.ERROR): 1}), f"nothing can happen any more, and this is owed: {dict(owed)}")
