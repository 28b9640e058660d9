"""Give an external step a new callback URL, which ends the former one (ANS-6)."""

from datetime import datetime

from engine.decisions.awaited_events import open_step
from engine.decisions.drafts import NextVersion, next_version
from engine.domain.events import Action, StepActionTaken
from engine.domain.orders import OrderAggregate
from engine.domain.steps import Step
from engine.features.external_events import with_callback_token


def step_of(order: OrderAggregate, name: str) -> Step:
    """Return the step of this name if an event to it counts now; raises `ActionRefusedError`."""
    return open_step(order, name)


def decide(order: OrderAggregate, step: Step, token: str, note: str, now: datetime) -> NextVersion:
    """Give the step this new token, also before its turn; the history does not have it."""
    renewed = order.with_steps(with_callback_token(step, token))
    taken = StepActionTaken(action=Action.NEW_CALLBACK_URL, step=step.name, note=note)
    return next_version(order, renewed, now, (taken,))
