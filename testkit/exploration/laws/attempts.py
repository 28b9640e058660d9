"""Laws about the start and end of attempts, and about what a reply may change."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from engine.decisions.transitions import HistoryEntry, Note, Transition
from engine.domain.effects import Doubt
from engine.domain.events import (
    Action,
    ActionTaken,
    AttemptDeferred,
    AttemptExpired,
    NotAttempted,
    PersonalDataErased,
    ReplyRefused,
    Restored,
    StepActionTaken,
    StepStarted,
    UndoRequested,
)
from engine.domain.messages import DeferredReply, NotAttemptedReply
from engine.domain.states import (
    AtWork,
    RequestCancelled,
    UnderWay,
    Undoing,
)
from engine.domain.steps import Step, StepIn
from testkit.exploration.driving import Handler
from testkit.exploration.laws.facts import (
    NEVER,
    OVER_LINK,
    attempts_begun,
    attempts_end_by,
    steps_to_try,
)
from testkit.exploration.laws.registry import COMMIT, DECISION, NOTED, law
from testkit.exploration.roles import decode_reply
from testkit.exploration.violations import demand
from testkit.exploration.world import World


@law("SUP-3", at=COMMIT)
def attempts_grow_by_one(world: World, transition: Transition) -> None:
    """Of each step at most one attempt starts at a time, and no more than the faults allow."""
    for step in transition.after.steps:
        begun, attempts = attempts_begun(transition, step.name), step.counts.attempts
        demand(
            begun in (0, 1), f"{step.name}: {begun} attempts started together, {attempts} in all"
        )
        demand(
            not begun or attempts <= world.deployed.most_attempts,
            f"{step.name} has {attempts} attempts, more than the faults allow",
        )


def _begun(transition: Transition) -> Iterator[tuple[Step, Step]]:
    """Yield the steps of which an attempt starts, before and after the transition."""
    for step in transition.after.steps:
        if attempts_begun(transition, step.name):
            yield transition.before.step(step.name), step


@law("SCH-2", "SUP-3", "UND-2", at=COMMIT)
def begun_by_the_rules(world: World, transition: Transition) -> None:
    """Attempts start only when they may, and get their step's time-out."""
    for before, after in _begun(transition):
        _is_begun_by_the_rules(world, transition, before, after)


def _is_begun_by_the_rules(world: World, transition: Transition, before: Step, after: Step) -> None:
    now = transition.entry.at
    until, end = now + after.rules.timeout, attempts_end_by(transition.before)
    until = until if isinstance(after.state, Undoing) else min(until, end or until)
    demand(
        after.complete_by == until,
        f"{after.name} started at {now} and has until {after.complete_by}: expected {until}",
    )
    late = transition.entry.event == "claimed" or before.complete_by is None
    demand(
        not late or (before.not_before or now) <= now,
        f"{after.name} started before its time, {before.not_before}",
    )
    if isinstance(after.state, Undoing) and after.rules.late_effect_window:
        until = _tried_at(world, after) + after.rules.timeout + world.deployed.tolerance
        settled = until + after.rules.late_effect_window
        demand(
            now >= settled,
            f"{after.name} is undone at {now}, but a call may take effect until {settled} (UND-2)",
        )


@law("SCH-16", at=COMMIT)
def apart_from_the_last(world: World, transition: Transition) -> None:
    """An attempt that counted as no failure is repeated after a growing pause."""
    for _, after in _begun(transition):
        _is_apart_from_the_last(world, transition, after)


def _is_apart_from_the_last(world: World, transition: Transition, after: Step) -> None:
    before = [event for entry in world.history() for event in entry.events]
    uncounted = _uncounted([*before, *transition.entry.events], after)
    began = max((entry.at for entry in world.history() if _begins(entry, after)), default=NEVER)
    if uncounted:
        least = timedelta(seconds=min(2 ** (uncounted - 1) / 4, 300))
        demand(
            transition.entry.at >= began + least,
            f"{after.name} started at {began}, and too soon at {transition.entry.at} (SCH-16)",
        )


def _begins(entry: HistoryEntry, step: Step) -> bool:
    return any(isinstance(event, StepStarted) and event.step == step.name for event in entry.events)


def _uncounted(events: Sequence[Any], after: Step) -> int:
    """Return how many attempts of one kind counted as no failure since the last other outcome."""
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


@law("SUP-9", at=COMMIT)
def not_sent_for_ever(world: World, transition: Transition) -> None:
    """A step that no agent begins is requested a limited number of times."""
    most = world.deployed.settings.max_unbegun_attempts
    before = [event for entry in world.history() for event in entry.events]
    for _, after in _begun(transition):
        unbegun = _unbegun([*before, *transition.entry.events], after)
        demand(
            unbegun < most,
            f"{after.name} is requested after {unbegun} requests that no agent began (SUP-9)",
        )


def _unbegun(events: Sequence[Any], after: Step) -> int:
    """Return how many requests of a step no agent has begun since the last other outcome."""
    count = 0
    for event in reversed(events):
        if _begins_anew(event):
            break
        if getattr(event, "step", None) != after.name or isinstance(event, StepStarted):
            continue
        if not isinstance(event, AttemptExpired) or event.has_begun:
            break
        count += 1
    return count


def _begins_anew(event: Any) -> bool:
    """Whether a person or the undo of the order starts its steps again."""
    if isinstance(event, StepActionTaken):
        return event.action == Action.RETRY_WITH_NEW_KEY
    return isinstance(event, ActionTaken | PersonalDataErased | UndoRequested)


def _is_uncounted(event: Any) -> bool:
    return isinstance(event, NotAttempted | AttemptDeferred) or (
        isinstance(event, AttemptExpired) and event.failure is None
    )


def _tried_at(world: World, step: Step) -> datetime:
    """Return when the last attempt to do the step started, by the history."""

    def begins(event: Any) -> bool:
        return isinstance(event, StepStarted) and event.step == step.name and not event.is_undo

    return max(
        (entry.at for entry in world.history() if any(map(begins, entry.events))), default=NEVER
    )


@law("AGT-3", at=COMMIT)
def stays_where_its_key_is_known(world: World, transition: Transition) -> None:
    """A step that may have been done is repeated and undone at a provider that knows its key."""
    for before, after in _begun(transition):
        at_service = before.counts.attempts and not before.is_external
        if at_service and (isinstance(before.effect, Doubt) or isinstance(after.state, Undoing)):
            former, now = (world.deployed.providers[step.agent] for step in (before, after))
            demand(
                former == now,
                f"{after.name} may have been done at {former}, but is sent to {now} (AGT-3)",
            )


@law("SCH-6", "SUP-2", at=COMMIT)
def over_in_time(world: World, transition: Transition) -> None:
    """An attempt ends by a reply in time, or by a supervisor afterwards."""
    for step in transition.before.in_state(UnderWay):
        _is_over_in_time(world, transition, step)


def _is_over_in_time(world: World, transition: Transition, step: StepIn[UnderWay]) -> None:
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
            "a step expired before its complete-by time",
        )
        _due_again(transition, step.name)
    else:
        named = [getattr(event, "step", None) for event in transition.entry.events]
        demand(step.name in named, f"an attempt of {step.name} ended without a reply (SCH-2)")
        in_time = transition.entry.at <= step.state.complete_by + world.deployed.tolerance
        demand(in_time, f"a late reply to {step.name} counted")


def _due_again(transition: Transition, name: str) -> None:
    """A step that is attempted again names the time by which this attempt should end (SUP-3)."""
    if transition.before.direction is not transition.after.direction:
        # Steps of an order that is now being undone are not attempted again.
        return
    for step in steps_to_try(transition.after):
        by = (step.not_before or transition.entry.at) + step.rules.timeout
        right = step.name != name or step.retry_by == by
        demand(right, f"{name} is attempted again by {step.retry_by}: expected {by} (SUP-3)")


@law("SCH-6", at=DECISION)
def changes_the_answered_step_alone(_: World, handler: Handler, transition: Transition) -> None:
    """A reply changes only the current attempt of the step that it names."""
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


@law("AGT-8", at=DECISION)
def keeps_the_pause(_: World, handler: Handler, transition: Transition) -> None:
    """A step waits as long as its agent requests, unless only one instance's circuit is open."""
    if handler.job.kind != "reply" or transition.before is None:
        return
    reply = decode_reply(handler.job.body)
    turned = reply.action == "do" and transition.after.is_undo
    if not isinstance(reply, NotAttemptedReply | DeferredReply):
        return
    is_of_circuit = reply.reason is not None and reply.reason.is_circuit_open
    if reply.retry_after and not is_of_circuit and not turned:
        until = transition.entry.at + timedelta(seconds=reply.retry_after)
        step = transition.after.step(reply.step)
        kept = step.counts.attempts == reply.attempt and (step.not_before or NEVER) >= until
        demand(
            kept, f"{reply.step} waits until {step.not_before}: expected at least {until} (AGT-8)"
        )


@law("SCH-6", at=NOTED)
def refuses_no_reply_that_counts(world: World, handler: Handler, note: Note) -> None:
    """No valid reply is only noted."""
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
        f"a valid reply was refused: {note.entry.detail} (SCH-6)",
    )


def _under_way(world: World, step: str) -> StepStarted | None:
    """Return the start of the running attempt by the history, whatever is recorded."""
    for event in reversed([event for entry in world.history() for event in entry.events]):
        if isinstance(event, Restored):
            # Attempts that were running when the order was copied are unknown.
            return None
        if getattr(event, "step", None) == step and not isinstance(event, ReplyRefused):
            return event if isinstance(event, StepStarted) else None
    return None
