"""What must hold in every state of every world (pattern.md, 10)."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from core.agenda import Kind
from core.changes import Change, Note
from core.keys import history_key, sortable
from core.messages import OPERATORS, AgentReply, AgentRequest, BusMessage
from core.orders import ENDED, Direction, Outcome, ProcessState, Snapshot, Step, StepState
from core.workflow import Workflow
from exploration import roles
from exploration.driving import Effect, Handler
from exploration.roles import KINDS, TOLERANCE, decode
from exploration.told import check_alert, check_notices, stands, unsent
from exploration.violations import demand
from exploration.world import World

GIVES_BACK = {"recovered", "put-back"}
ENDS = {"processed", "failed", "undone", "undo-incomplete", "undo-requested"}
"""A claim may end the order at once, so these may also come while nobody has it."""

OPEN = (StepState.NOT_STARTED, StepState.RUNNING)
RUNS = (StepState.RUNNING, StepState.UNDOING)
ACTED_ON = ("Agents", "NotBefore", "UpdatedAt", "Workflow", "WorkflowVersion")
NEVER = datetime.min.replace(tzinfo=UTC)

EVENTS_OF = {"resubmit": {"resubmitted"}, "skip": {"skipped", "step-skipped"}, "cancel": {"cancelled"}}
"""What the history says of an operator's action."""


def check(world: World) -> None:
    """Check a state: of each order what must hold, whatever becomes of those beside it."""
    for part in world.each():
        _check(part)


def _check(world: World) -> None:
    order = world.order()
    if order is None:
        _not_lost(world)
        return
    _alerted_once(world)
    _nothing_stands_half_done(world, order)
    check_notices(world)
    if not world.rows.sound:
        _check_rows(world, order)
        world.rows.sound = True


def _check_rows(world: World, order: Snapshot) -> None:
    """Check what follows from the stored rows alone, once for all worlds that share them."""
    _numbered_without_gaps(world, order)
    _handled_by_one(world, order)
    _shown_as_it_is(order)
    _owed_as_it_is(world, order)
    _failures_counted_once(world, order)
    _over_for_good(world)
    _waits_for_nothing_else(order)
    _ended_as_its_steps_say(order)


def _ended_as_its_steps_say(order: Snapshot) -> None:
    """An order has ended as its steps have, and no step has failed for which nothing follows (SCH-8, SCH-12, UND-5)."""
    state, steps = order.state, {step.name: step.state for step in order.steps}
    standing = [step.name for step in order.steps if stands(step)]
    gone = roles.WORKFLOWS.find(state.workflow, state.workflow_version) is None or roles.KNOWN
    if state.process_state is ProcessState.PROCESSED:
        demand(set(steps.values()) <= {StepState.COMPLETED, StepState.SKIPPED}, f"the order is Processed: {steps}")
    if state.process_state is ProcessState.ERROR:
        holds = {
            Outcome.FAILED: order.in_state(StepState.FAILED) or gone,
            Outcome.UNDONE: not standing,
            Outcome.UNDO_INCOMPLETE: standing,
        }
        demand(holds[state.outcome], f"the order is called {state.outcome}: {steps}")


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
    begun = (handler.job for handler in world.handlers.values())
    here = any(each.kind == "submission" and world.order_id in each.body for each in (*world.queue, *begun))
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
    owed = set(_owed(order))
    demand(stored == owed, f"the agenda holds {sorted(stored)}, owed is {sorted(owed)}")
    for row in (world.agenda()[key] for key in owed):
        said = {name: row.data.get(name) for name in ACTED_ON}
        demand(said == _acted_on(order), f"{row.key} says {said} of {_acted_on(order)}")


def _acted_on(order: Snapshot) -> dict[str, object]:
    """What rows of the agenda say that others go by: who waits for how long, for whom, and where there is room."""
    state = order.state
    agents = " ".join(step.agent for step in order.steps if step.state in RUNS and step.complete_by)
    said = (agents or None, state.not_before, state.updated_at, state.workflow, state.workflow_version)
    return dict(zip(ACTED_ON, said, strict=True))


def _owed(order: Snapshot) -> Iterator[str]:
    """What is owed to an order, read off its records here once more: the shipped code is not asked."""
    state, due = order.state, [step.complete_by for step in order.steps if step.state in RUNS and step.complete_by]
    if state.process_state is ProcessState.PENDING:
        ready = _ready(order)
        first = min(ready, key=lambda step: step.not_before or state.not_before).capability if ready else "-"
        rank = {"high": 0, "normal": 1}[state.priority]
        yield f"!pending|{rank}|{first}|{sortable(state.not_before)}|{state.order_id}"
    if due:
        yield f"!running|{sortable(min(due))}|{state.order_id}"
    if state.process_state is ProcessState.ERROR and state.outcome is not Outcome.UNDONE:
        yield f"!error|{sortable(state.updated_at)}|{state.order_id}"


def _ready(order: Snapshot) -> list[Step]:
    """The steps whose turn it is, by the workflow itself."""
    workflow = next(each for each in roles.WORKFLOWS.all if each.name == order.state.workflow)
    by_name = {step.name: step for step in order.steps}
    if order.state.direction is Direction.UNDO:
        owed = {step.name for step in order.steps if step.state is StepState.UNDOING or step.undo_failed}
        waiting = [step for step in order.steps if step.state is StepState.UNDOING and step.complete_by is None]
        forward = order.in_state(StepState.RUNNING)
        return [step for step in waiting if not (forward or owed & _dependents(workflow, step.name))]
    over = {step.name for step in order.steps if step.state in (StepState.COMPLETED, StepState.SKIPPED)}
    open_now = [each.name for each in workflow.steps if over.issuperset(each.after)]
    ready = [by_name[name] for name in open_now if by_name[name].state is StepState.NOT_STARTED]
    return [] if order.in_state(StepState.FAILED) else ready


def _waits_for_nothing_else(order: Snapshot) -> None:
    """A pending order may be claimed from the first moment on at which something of it can go on, and not before.

    So whoever has nothing to wait for is claimed at once: also an order that has failed (SCH-8).
    """
    state, now = order.state, order.state.updated_at
    if state.process_state is ProcessState.PENDING:
        first = min((step.not_before or now for step in _ready(order)), default=now)
        may = "may go on from now on" if first <= now else f"can go on from {first} on"
        demand(state.not_before <= max(first, now), f"the order waits until {state.not_before}, and {may}")
        demand(first <= now or state.not_before == first, f"the order may be claimed at {state.not_before}, and {may}")


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


def _counted_by_the_rules(change: Change, after: Step) -> None:
    """Each expiry of a step counts once, until it begins afresh; a full count makes it rest, or fail (SUP-3, SUP-4)."""
    before = change.before.step(after.name)
    expired = change.entry.actor.startswith("supervisor/") and before.complete_by and not after.complete_by
    again = before.state is StepState.FAILED and after.state not in (StepState.FAILED, StepState.SKIPPED)
    mended = again and change.entry.actor.startswith("operator/")
    afresh = mended or after.state is StepState.UNDOING is not before.state
    expiries = 0 if afresh else _expiries(before) + bool(expired)
    demand(_expiries(after) == expiries, f"{after.name} counts {_expiries(after)} expiries, and had {expiries}")
    forward = change.after.state.direction is Direction.FORWARD
    tried_again = after.state is StepState.UNDOING or (forward and after.state in OPEN)
    full = after.failure_count >= after.threshold
    demand(not (full and tried_again), f"{after.name} is {after.state} after {after.failure_count} failures")
    demand(after.cooldowns <= after.max_cooldowns, f"{after.name} rests for the {after.cooldowns}th time")


def _expiries(step: Step) -> int:
    """How often the step has expired since it began afresh: each rest stands for a full count."""
    return step.cooldowns * step.threshold + step.failure_count


def _alerted_once(world: World) -> None:
    """One alert for each time that the order ended in `Error`: sent, or owed (ALR-1)."""
    failed = [entry for entry in world.history() if entry.event in {"failed", "undone", "undo-incomplete"}]
    waiting = {row.data["EventId"] for row in unsent(world) if row.data["To"] == OPERATORS}
    alerts = waiting | world.published
    demand(len(alerts) == len(failed), f"{len(failed)} times Error, {len(alerts)} alerts")


def check_commit(world: World, change: Change) -> None:
    """Check a write at the moment at which the store carries it out."""
    stored = world.order()
    if change.before is None or stored is None:
        demand(stored is None, "an order was written over a recorded one")
        return
    demand(change.before.state.version == stored.state.version, "a change was written over another one")
    _nothing_begun_after_a_failure(change)
    _nothing_done_again(change)
    _by_one_who_knows_it(change)
    _out_of_error_by_an_operator(change)
    check_alert(change)
    _only_said(change)
    for step in change.after.steps:
        _attempted_by_the_rules(world, change, step)
        _counted_by_the_rules(change, step)
    for step in change.before.running():
        now = change.after.step(step.name)
        if now and now.runs and now.attempts == step.attempts:
            continue  # this change is not about it
        if change.entry.actor.startswith("supervisor/"):  # whatever its own clock says (FLT-9)
            demand(world.now > step.complete_by, "a step was called expired whose time had not passed")
        elif not _puts_back_what_was_not_sent(change):
            in_time = change.entry.at <= step.complete_by + TOLERANCE
            demand(in_time, f"a reply of {step.name} counted that came too late")


def _out_of_error_by_an_operator(change: Change) -> None:
    """What has failed stays so until somebody has mended it."""
    out = change.before.state.process_state is ProcessState.ERROR is not change.after.state.process_state
    demand(not out or change.entry.actor.startswith("operator/"), f"{change.entry.actor} took the order out of Error")


def _only_said(change: Change) -> None:
    """What an agent tells of its last call changes nothing else (AGT-4)."""
    if change.entry.event == "unfinished":
        before, after = change.before, change.after
        spoken = [replace(step, reason=None) for step in after.steps] == [replace(s, reason=None) for s in before.steps]
        same = replace(after.state, version=0, updated_at=NEVER) == replace(before.state, version=0, updated_at=NEVER)
        demand(spoken and same, f"a fault was told, and more has changed: {change.entry.detail}")


def _attempted_by_the_rules(world: World, change: Change, after: Step) -> None:
    """Attempts grow by one, take their timeout, and begin no sooner than they may (SUP-3, UND-2)."""
    before, now = change.before.step(after.name), change.entry.at
    begun = after.attempts - before.attempts
    demand(begun in (0, 1), f"{after.name}: attempt {before.attempts}, then {after.attempts}")
    if not begun:
        return
    demand(after.complete_by == now + after.timeout, f"{after.name} has until {after.complete_by}, begun at {now}")
    late = change.entry.event == "claimed" or before.complete_by is None
    demand(not late or (before.not_before or now) <= now, f"{after.name} begun before {before.not_before}")
    if after.state is StepState.UNDOING and after.late_effect_window:
        settled = _tried_at(world, after) + after.timeout + TOLERANCE + after.late_effect_window
        demand(now >= settled, f"{after.name} undone at {now}; a call may take effect until {settled} (UND-2)")


def _tried_at(world: World, step: Step) -> datetime:
    """When the last attempt to do the step began, as the history tells."""
    began = re.compile(rf"(?<!undo of )\b{step.name} attempt \d+ started")
    return max((entry.at for entry in world.history() if began.search(entry.detail)), default=NEVER)


def _puts_back_what_was_not_sent(change: Change) -> bool:
    """Whether this is about a request of the handler's own, which the bus did not take."""
    return "sent: Service Bus is away" in change.entry.detail


def check_answered(handler: Handler, change: Change) -> None:
    """Check what a reply changes: the step that it names, at its current attempt (SCH-6)."""
    if handler.job.kind != "reply" or change.before is None or _puts_back_what_was_not_sent(change):
        return
    reply = decode(AgentReply, handler.job.body)
    named = (reply.order_id, reply.step, reply.attempt, handler.job.agent)
    answered = [step for step in change.before.running() if step not in change.after.steps]
    others = [step.name for step in answered if (change.after.order_id, step.name, step.attempts, step.agent) != named]
    demand(not others, f"a reply to attempt {reply.attempt} of {reply.step} changed {others} (SCH-6)")


def _nothing_begun_after_a_failure(change: Change) -> None:
    begun = [step.name for step in change.changed_steps() if step.state is StepState.RUNNING]
    failed = change.after.in_state(StepState.FAILED)
    demand(not (begun and failed), f"{begun} begun although another step has failed (SCH-12)")


def _nothing_done_again(change: Change) -> None:
    """What is completed is only ever undone (SCH-9)."""
    completed = {step.name for step in change.before.in_state(StepState.COMPLETED)}
    again = completed.intersection(step.name for step in change.after.in_state(*OPEN))
    demand(not again, f"{again} completed, and to be done again (SCH-9)")


def _by_one_who_knows_it(change: Change) -> None:
    """Of an order that follows a newer workflow than it knows, a scheduler keeps its hands off (FLT-12)."""
    role, _, slot = change.entry.actor.partition("/")
    demand(role != "scheduler" or not _is_newer(change.before, slot), f"{slot} changed an order that it does not know")


def _is_newer(order: Snapshot, slot: str) -> bool:
    versions = [each.version for each in roles.known_to(slot).all if each.name == order.state.workflow]
    return order.state.workflow_version > max(versions, default=0)


def check_note(world: World, handler: Handler, note: Note) -> None:
    """Check what is only noted: no reply that counts (SCH-6)."""
    order = world.order()
    if handler.job.kind != "reply" or order is None:
        return
    answered = roles.decode(AgentReply, handler.job.body)
    step = order.step(answered.step)
    if roles.known_to(handler.slot).was_retired(order.state.workflow, order.state.workflow_version):
        return
    runs = step and step.complete_by and (step.agent, step.attempts) == (handler.job.agent, answered.attempt)
    right = runs and (step.state is StepState.UNDOING) == (answered.action == "undo")
    news = answered.outcome != "unfinished" or answered.reason != step.reason
    counts = right and news and note.entry.at <= step.complete_by + TOLERANCE
    demand(not counts, f"a reply that counts was refused: {note.entry.detail} (SCH-6)")


def check_acted(world: World, handler: Handler) -> None:
    """Check what an operator was told that it is done: it stands in the state (OPR-6)."""
    events = {entry.event for entry in world.history() if entry.actor.startswith("operator/")}
    demand(events & EVENTS_OF[handler.job.kind], f"{handler.job.kind} is said to be done, and is not recorded (OPR-6)")


def check_read(world: World, handler: Handler, effect: Effect) -> None:
    """Check a look at the store: who sweeps has the lease at each page (SUP-5); it is no fence for what follows."""
    if handler.job.kind == "sweep" and effect.name == "agenda":
        held = world.lease is not None and world.lease[0] == handler.slot
        demand(held, f"{handler.slot} looks for overdue orders without the lease (SUP-5)")


def check_call(world: World, request: AgentRequest) -> None:
    """Check what is about to happen at a remote service: in the order of dependence, and back in reverse (UND-1)."""
    order = world.order()
    workflow = roles.WORKFLOWS.find(order.state.workflow, order.state.workflow_version) if order else None
    if workflow is None:
        return
    skipped = {step.name for step in order.in_state(StepState.SKIPPED)}
    done, undone = _steps(world, "do"), _steps(world, "undo")
    if request.action == "do":
        definition = workflow.definition(request.step)
        before = set(definition.after if definition else ())
        demand(done | skipped >= before, f"{request.step} begins before {before - done} (SCH-10)")
    else:
        standing = (done - undone - skipped) & _dependents(workflow, request.step)
        demand(not standing, f"{request.step} is undone while {standing} stands (UND-1)")


def _dependents(workflow: Workflow, step: str) -> set[str]:
    """The steps that come after this one, directly or not, by the workflow itself."""
    direct = {definition.name for definition in workflow.steps if step in definition.after}
    return direct.union(*(_dependents(workflow, name) for name in direct))


def _steps(world: World, action: str) -> set[str]:
    """The steps of which this has happened."""
    found = (effect.split(" ") for effect in world.effects)
    return {key.rpartition(":")[2] for key, done in found if done == action}


def check_effect(world: World, handler: Handler, effect: Effect) -> None:
    """Check what a handler is about to do."""
    if effect.name == "call":
        _called_in_time(world, effect.args[0])
    if effect.name == "send":
        for message in effect.args[0]:
            if KINDS.get(message.queue) in ("request", "backup-request"):
                _recorded_first(world, decode(AgentRequest, message.body))
            if KINDS.get(message.queue) == "reply":
                _replied_in_time(world, handler, message)


def _called_in_time(world: World, request: AgentRequest) -> None:
    demand(world.now < request.complete_by, "the service was called after the complete-by time (AGT-5)")
    key = f"{request.order_id}:{request.step}"
    demand(request.idempotency_key == key, f"idempotency key {request.idempotency_key} for {key} (AGT-3)")


def _replied_in_time(world: World, agent: Handler, reply: BusMessage) -> None:
    request = decode(AgentRequest, agent.job.body)
    demand(world.now < request.complete_by, "an agent replied after the complete-by time (AGT-4)")
    left = request.complete_by - roles.clock_of(agent.slot, world.now)
    demand(reply.time_to_live and reply.time_to_live <= left, "a reply outlives the complete-by time (AGT-4)")


def _recorded_first(world: World, request: AgentRequest) -> None:
    order = world.about(request.order_id).order()
    step = order.step(request.step) if order else None
    demand(step and step.attempts >= request.attempt, "a request goes out that is not recorded as running (SCH-3)")


def has_ended(world: World) -> bool:
    """Whether the order is at an end, of which only an operator can make a beginning; also if it was never recorded."""
    state = world.state()
    return state.process_state in ENDED if state else bool(world.poison)


def check_end(world: World) -> None:
    """Check a state in which nothing happens by itself any more: each order has ended, and nobody owes it anything.

    But an operator, if it is in `Error` and was not undone.
    """
    for part in world.each():
        _check_end(part)


def _check_end(world: World) -> None:
    state = world.state()
    if state is None:
        demand(world.poison, "nothing can happen any more, and the order is not recorded")
        return
    demand(has_ended(world), f"nothing can happen any more, and the order is {state.process_state}")
    waits = state.process_state is ProcessState.ERROR and state.outcome is not Outcome.UNDONE
    owed = [key.split("|")[0] for key in world.agenda()]
    demand(owed == ["!error"] * waits, f"nothing can happen any more, and this is owed: {owed}")
