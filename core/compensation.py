"""The compensating transaction: how an order is turned back (UND-1, UND-2).

Turning back is written to the state by whoever asks for it: the supervisor, the scheduler, an operator. What it means
for the steps is the same for all of them, and needs no workflow: each step's record says whether it can be undone.
"""

from dataclasses import replace
from datetime import datetime

from core.orders import Direction, Snapshot, Step, StepState


def turn_back(order: Snapshot, now: datetime) -> Snapshot:
    """Return the order with all that was done, or may have been done, waiting to be undone.

    Steps that run answer or expire first (SCH-12); then `to_be_undone` is asked about each of them.
    """
    steps = (step if step.runs else to_be_undone(step, now) for step in order.steps)
    return order.with_steps(*steps).with_state(direction=Direction.UNDO)


def to_be_undone(step: Step, now: datetime) -> Step:
    """Return the step as it waits to be undone, if there is, or may be, anything to undo (UND-2).

    So it is with every step that was ever tried: also after a refusal, the same request may have been delivered twice.
    """
    if not step.undoable or not step.attempts:
        return step
    return replace(
        step,
        state=StepState.UNDOING,
        complete_by=None,
        failure_count=0,
        cooldowns=0,
        reason=None,
        not_before=None if step.state is StepState.COMPLETED else _settled(step, now),
    )


def _settled(step: Step, now: datetime) -> datetime | None:
    """Return from when on no attempt can take effect any more; None for a service that refuses undone keys (UND-2)."""
    return max(now, step.tried_until or now) + step.late_effect_window if step.late_effect_window else None
