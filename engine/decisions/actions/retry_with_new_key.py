"""Do a failed step under a new key, since it was not done and its key is forgotten (AGT-12)."""

from datetime import datetime

from engine.decisions.drafts import NextVersion
from engine.decisions.repair import chosen, forgotten_steps, resumed_or_left, why_not_repaired
from engine.domain.causes import Cause, Code
from engine.domain.events import Action, StepActionTaken
from engine.domain.orders import OrderAggregate
from engine.domain.steps import Step
from engine.features import key_generations


def refusal(order: OrderAggregate, now: datetime) -> Cause | None:
    """Return why no step needs a new key now; None if one does."""
    if order.is_undo:
        return Cause(Code.BEING_UNDONE)
    if cause := why_not_repaired(order, Action.RETRY_WITH_NEW_KEY):
        return cause
    return None if forgotten_steps(order, now) else Cause(Code.NO_KEY_FORGOTTEN)


def step_of(order: OrderAggregate, name: str | None, now: datetime) -> Step:
    """Return the step of this name that needs a new key, or the only one.

    Raises `ActionRefusedError`.
    """
    return chosen(forgotten_steps(order, now), name, Action.RETRY_WITH_NEW_KEY)


def decide(order: OrderAggregate, step: Step, note: str, now: datetime) -> NextVersion:
    """Let the step start afresh; the order goes on unless another step has failed too.

    If an operator is mistaken, the step is done twice.
    """
    after = order.with_steps(key_generations.retry_with_new_key(step))
    taken = StepActionTaken(action=Action.RETRY_WITH_NEW_KEY, step=step.name, note=note)
    return resumed_or_left(order, after, now, taken)
