"""What must hold in every state of every world (pattern.md, 10)."""

from collections import Counter

from adapters.writes import event_of
from core import agenda
from core.agenda import Kind
from core.changes import Change
from core.keys import history_key
from core.messages import AgentReply, AgentRequest, decode
from core.orders import ProcessState, Snapshot, StepState
from exploration.driving import Effect
from exploration.roles import MARGIN, QUEUES, TOLERANCE
from exploration.world import World

TAKES = {"claimed"}
ENDS = {"recovered", "put-back", "processed", "failed"}
"""Transitions that a scheduler's handling of the order begins and ends with."""


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
    if order.state.process_state is ProcessState.PROCESSED:
        demand(world.effects, "the order is Processed, but nothing was ever paid")


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
        if entry.event in TAKES | ENDS:
            demand(held == (entry.event in ENDS), f"“{entry.event}” while {'a scheduler' if held else 'nobody'} had it")
            held = entry.event in TAKES
    demand(held == (order.state.locked_by is not None), f"held: {held}, but LockedBy is {order.state.locked_by}")
    demand(held == (order.state.process_state is ProcessState.PROCESSING), f"{order.state.process_state}, held: {held}")


def _shown_as_it_is(order: Snapshot) -> None:
    running = order.in_state(StepState.RUNNING)
    if order.state.process_state is ProcessState.PROCESSING:
        demand(running, "the order is Processing, but no step runs")
        demand(order.state.complete_by == order.earliest_complete_by(), "CompleteBy is not the earliest of the steps'")
    else:
        demand(not running, f"a step runs, and nobody looks at it: the order is {order.state.process_state}")


def _owed_as_it_is(world: World, order: Snapshot) -> None:
    stored = {key for key in world.agenda() if not key.startswith(Kind.OUTBOX)}
    owed = set(agenda.obligations(order))
    demand(stored == owed, f"the agenda holds {sorted(stored)}, owed is {sorted(owed)}")


def _failures_counted_once(world: World, order: Snapshot) -> None:
    expiries, claims = 0, 0
    for entry in world.history():
        claims += entry.event == "claimed"
        if entry.event == "resubmitted":
            expiries = 0
        elif entry.actor.startswith("supervisor/"):
            expiries += 1
    demand(order.state.failure_count == expiries, f"FailureCount {order.state.failure_count} after {expiries} expiries")
    attempts = sum(step.attempts for step in order.steps)
    demand(attempts == claims, f"{attempts} attempts, though the order was claimed {claims} times")


def _alerted_once(world: World) -> None:
    """One alert for each time that the order ended in `Error`: sent, or owed (ALR-1)."""
    failed = [entry for entry in world.history() if entry.event == "failed"]
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
    running = change.before.in_state(StepState.RUNNING)
    for step in running:
        late = step.complete_by is not None and change.entry.at > step.complete_by + TOLERANCE
        by_reply = change.entry.event in {"processed", "step-completed"}
        demand(not (by_reply and late), f"a reply counted that came {change.entry.at - step.complete_by} too late")
        by_time = change.entry.actor.startswith("supervisor/")
        demand(late or not by_time, "a step was called expired whose time had not passed")


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
