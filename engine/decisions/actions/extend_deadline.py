"""Move the deadline of an external event, to a later or an earlier time (ANS-7)."""

from datetime import datetime

from engine.decisions.awaited_events import awaited_step
from engine.decisions.drafts import NextVersion, next_version
from engine.decisions.errors import ActionRefusedError
from engine.declarations.workflow import LONGEST_WAIT
from engine.domain.causes import Cause, Code
from engine.domain.errors import InvalidError
from engine.domain.events import Action, DeadlineMoved
from engine.domain.orders import OrderAggregate
from engine.domain.steps import Step
from engine.features.external_events import move_deadline


def step_of(order: OrderAggregate, name: str) -> Step:
    """Return the step of this name if its deadline can be moved; raises `ActionRefusedError`.

    The deadline of an order on hold moves when the order is released (OPR-7).
    """
    step = awaited_step(order, name)
    if order.hold:
        raise ActionRefusedError(Cause(Code.DEADLINE_ON_HOLD, {"by": order.hold.by}))
    return step


def decide(
    order: OrderAggregate, step: Step, until: datetime, note: str, now: datetime
) -> NextVersion:
    """Await the event until this time; raises `InvalidError` for one that is over or too far."""
    if not now < until <= now + LONGEST_WAIT:
        raise InvalidError([f"until: expected a time within {LONGEST_WAIT.days} days from now"])
    moved = order.with_steps(move_deadline(step, until))
    taken = DeadlineMoved(action=Action.EXTEND_DEADLINE, step=step.name, note=note, until=until)
    return next_version(order, moved, now, (taken,))
