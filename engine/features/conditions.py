"""Conditions and start times of steps, which are evaluated when the step's turn comes.

Before that, the step is in `ConditionPending`. Its condition may skip it (SCH-14), and its start
time may let it wait in `Scheduled` (SCH-15).
"""

from dataclasses import replace
from datetime import datetime

from engine.domain.causes import Cause, Code
from engine.domain.states import Scheduled, Skipped, SkipReason, Waiting
from engine.domain.steps import Step
from engine.domain.table import TableEvent
from engine.domain.verbs import verb


@verb(TableEvent.CONDITION_MET)
def condition_met(step: Step) -> Step:
    """Let the step start when an agent has capacity."""
    return replace(step, state=Waiting())


@verb(TableEvent.CONDITION_NOT_MET)
def skip_by_condition(step: Step, condition: str) -> Step:
    """Skip the step, because its condition is false. `condition` is the name of the function."""
    cause = Cause(Code.CONDITION_NOT_MET, {"condition": condition})
    return replace(step, state=Skipped(SkipReason.CONDITION, cause))


@verb(TableEvent.SCHEDULE)
def schedule(step: Step, at: datetime) -> Step:
    return replace(step, state=Scheduled(at))
