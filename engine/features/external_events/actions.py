"""Operators' actions on an external event: remind, extend its deadline, make a new callback URL.

Each action needs only the order. Each raises `ActionRefusedError` if it is not possible.
"""

from datetime import datetime

from engine.decisions.drafts import NextVersion, next_version
from engine.decisions.errors import ActionRefusedError
from engine.declarations.workflow import LONGEST_WAIT
from engine.domain.causes import Cause, Code
from engine.domain.errors import InputFault, InvalidError
from engine.domain.events import Action, DeadlineMoved, StepActionTaken
from engine.domain.orders import OrderAggregate
from engine.domain.states import PATTERN_STATE, AwaitingExternalEvent
from engine.domain.steps import Step, StepIn
from engine.features.external_events.decide import external_step, why_closed
from engine.features.external_events.steps import move_deadline, with_callback_token


def extend_deadline(
    order: OrderAggregate, name: str, until: datetime, note: str, now: datetime
) -> NextVersion:
    """Wait for the event until this time, which may be earlier than before (ANS-7).

    Raises `InvalidError` for a time that has passed, is too far in the future, or is after the
    deadline of the order (SCH-17). Raises `ActionRefusedError` for an order on hold: the
    due time of its event moves when the order is released (OPR-7).
    """
    step = _awaited_step(order, name)
    if order.hold:
        raise ActionRefusedError(Cause(Code.DEADLINE_ON_HOLD, {"by": order.hold.by}))
    if not now < until <= now + LONGEST_WAIT:
        raise InvalidError([InputFault("until", "not-within-days", {"days": LONGEST_WAIT.days})])
    if order.attempts_end_by and until > order.attempts_end_by:
        facts = {"due_by": order.attempts_end_by.isoformat()}
        raise InvalidError([InputFault("until", "after-due-by", facts)])
    moved = order.with_steps(move_deadline(step, until))
    taken = DeadlineMoved(action=Action.EXTEND_DEADLINE, step=name, note=note, until=until)
    return next_version(order, moved, now, (taken,))


def remind(order: OrderAggregate, name: str, note: str, now: datetime) -> NextVersion:
    """Record a reminder, which causes its messages. The deadline does not move (ANS-7)."""
    _awaited_step(order, name)
    taken = StepActionTaken(action=Action.REMIND, step=name, note=note)
    return next_version(order, order, now, (taken,))


def new_callback_url(
    order: OrderAggregate, name: str, token: str, note: str, now: datetime
) -> NextVersion:
    """Give the step this callback token, which ends the former URL (ANS-6).

    The step may still wait for its turn.
    """
    renewed = order.with_steps(with_callback_token(_open_step(order, name), token))
    # The token must not be in the history.
    taken = StepActionTaken(action=Action.NEW_CALLBACK_URL, step=name, note=note)
    return next_version(order, renewed, now, (taken,))


def _open_step(order: OrderAggregate, name: str) -> Step:
    """Return the external step of this name.

    Raises `ActionRefusedError` if no event to it counts now.
    """
    step = external_step(order, name)
    if cause := why_closed(order, step):
        raise ActionRefusedError(cause)
    return step


def _awaited_step(order: OrderAggregate, name: str) -> StepIn[AwaitingExternalEvent]:
    """Return the step of this name that waits for its event now.

    Raises `ActionRefusedError` if it does not wait.
    """
    step = _open_step(order, name)
    for awaited in order.in_state(AwaitingExternalEvent):
        if awaited.name == name:
            return awaited
    facts = {"step": name, "state": str(PATTERN_STATE[type(step.state)])}
    raise ActionRefusedError(Cause(Code.EVENT_NOT_AWAITED_YET, facts))
