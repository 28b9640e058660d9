"""The long pause of a step that has reached its failure threshold (SUP-3).

A step enters `CoolingDown` when its attempt expires. It leaves the state when its next attempt
starts, or when an operator expedites the order.
"""

from dataclasses import replace

from engine.domain.states import CoolingDown, UndoPending, Waiting
from engine.domain.steps import Step
from engine.domain.table import TableEvent
from engine.domain.verbs import verb


def is_cooling_down(step: Step) -> bool:
    """Return whether the step or its undo is cooling down."""
    return isinstance(step.wait, CoolingDown)


@verb(TableEvent.END_COOLDOWN)
def end_cooldown(step: Step) -> Step:
    """Let the step start now, because an operator expedited the order (OPR-8)."""
    match step.state:
        case CoolingDown() as cooling:
            return replace(step, state=_ended(cooling))
        case UndoPending(CoolingDown() as cooling):
            return replace(step, state=UndoPending(_ended(cooling)))
    return step


def _ended(cooling: CoolingDown) -> Waiting:
    return Waiting(cooling.cause, cooling.retry_by)
