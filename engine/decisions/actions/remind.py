"""Remind somebody outside of an external event that is awaited (ANS-7)."""

from datetime import datetime

from engine.decisions.awaited_events import awaited_step
from engine.decisions.drafts import NextVersion, next_version
from engine.domain.events import Action, StepActionTaken
from engine.domain.orders import OrderAggregate
from engine.domain.steps import Step


def step_of(order: OrderAggregate, name: str) -> Step:
    """Return the step of this name if its event is awaited now; raises `ActionRefusedError`."""
    return awaited_step(order, name)


def decide(order: OrderAggregate, step: Step, note: str, now: datetime) -> NextVersion:
    """Record the reminder, from which its message follows; the deadline stays."""
    taken = StepActionTaken(action=Action.REMIND, step=step.name, note=note)
    return next_version(order, order, now, (taken,))
