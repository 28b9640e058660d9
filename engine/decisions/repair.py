"""Common parts of the actions on an order in `Error`: its failed steps, and how it continues."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from engine.decisions.drafts import NextVersion, next_version
from engine.domain.causes import Cause, Code
from engine.domain.events import StepActionTaken
from engine.domain.orders import PROCESS_STATE, InError, OrderAggregate
from engine.domain.states import (
    BackingOff,
    CoolingDown,
    Delayed,
    Failed,
    UndoFailed,
    Waiting,
)
from engine.domain.steps import Step, StepIn
from engine.domain.verbs import reset
from engine.features import key_generations
from engine.features.external_events.steps import is_awaited_again


def failed_steps(order: OrderAggregate) -> tuple[StepIn[Failed] | StepIn[UndoFailed], ...]:
    """Return the steps that caused `Error`.

    In an undo, these are the steps that were not undone.
    """
    return order.in_state(UndoFailed) if order.is_undo else order.in_state(Failed)


def interrupted_steps(order: OrderAggregate) -> tuple[Step, ...]:
    """Return the steps that wait for an attempt that the passed deadline prevents (SCH-17)."""
    if not order.is_late:
        return ()
    waits = Waiting | Delayed | BackingOff | CoolingDown
    return tuple(
        step for step in order.steps if isinstance(step.state, waits) and step.counts.attempts
    )


def forgotten_steps(order: OrderAggregate, now: datetime) -> tuple[Step, ...]:
    """Return the failed steps whose services may have forgotten their keys (AGT-12)."""
    return tuple(step for step in failed_steps(order) if key_generations.is_forgotten(step, now))


def why_not_repaired(order: OrderAggregate, action: str) -> Cause | None:
    """Return the reason why no action can continue the order, or None if one can."""
    if not isinstance(order.state, InError):
        state = str(PROCESS_STATE[type(order.state)])
        return Cause(Code.NOT_IN_ERROR, {"action": action, "state": state})
    return Cause(Code.NOTHING_TO_RESUME) if order.is_over else None


def resumed(order: OrderAggregate, now: datetime) -> OrderAggregate:
    """Let any scheduler claim the order, with a fresh count of failures (OPR-3).

    External parties that had a request get it again, unless the order is undone. If the
    deadline has passed, the order continues without one (SCH-17).
    """
    again = () if order.is_undo else filter(is_awaited_again, order.steps)
    deadline = order.deadline and order.deadline.after_resume(now)
    return replace(order.resume(*map(reset, again)), deadline=deadline)


def resumed_or_left(
    before: OrderAggregate, after: OrderAggregate, now: datetime, taken: StepActionTaken
) -> NextVersion:
    """Let the order continue after an action on a step, unless another step has failed too."""
    if left := failed_steps(after):
        return next_version(before, replace(after, cause=left[0].state.cause), now, (taken,))
    return next_version(before, resumed(after, now), now, (replace(taken, resumes=True),))


def why_not_chosen(steps: Sequence[Step], name: str | None, action: str) -> Cause | None:
    """Return the reason why no single step can be chosen, or None if one can.

    With the name None, the only step is chosen.
    """
    found = [step for step in steps if name in (None, step.name)]
    facts = {"action": action, "steps": [step.name for step in steps]}
    if not found:
        return Cause(Code.NO_SUCH_STEP, facts)
    return Cause(Code.SEVERAL_STEPS, facts) if len(found) > 1 else None


def chosen(steps: Sequence[Step], name: str | None) -> Step:
    """Return the step of this name, or the only step if the name is None.

    Call it only if `why_not_chosen` returns None.
    """
    return next(step for step in steps if name in (None, step.name))
