"""Services at which a slow call may still take effect after its undo (UND-2).

The workflow declares the late-effect window. The undo waits for that time in `LateEffectsPossible`.
"""

from datetime import datetime, timedelta

from engine.domain.states import Undoing, UndoPending
from engine.domain.steps import Step


def effects_final_at(step: Step, now: datetime, clock_tolerance: timedelta) -> datetime | None:
    """Return the time after which no call of the step takes effect, if one more attempt starts now.

    An attempt to undo the step does not change the time. Returns None if the service refuses undone
    keys.
    """
    before = step.key.effects_final_at if step.key else None
    window = step.rules.late_effect_window
    if not window or isinstance(step.state, UndoPending | Undoing):
        return before
    final_at = now + step.rules.timeout + clock_tolerance + window
    return max(final_at, before or final_at)
