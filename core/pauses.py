"""The pause before an attempt is repeated that has counted as no failure (SCH-16).

A counted failure is repeated until the threshold at most. What counts as none has no such end: an
agent could not call, nobody took the request, or the service does the work later. So the time
between the beginnings of two attempts grows.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from core.life import StepState
from core.orders import Step

SHORTEST_APART, LONGEST_APART = timedelta(seconds=0.25), timedelta(minutes=5)
"""The least time between the beginnings of two attempts, after one and after many of them."""

DOUBLINGS = 11
"""After so many doublings the longest time is reached; a larger power would be a huge number."""


def apart(uncounted: int) -> timedelta:
    """Return the least time between two attempts after so many that have counted as no failure."""
    return min(SHORTEST_APART * (1 << min(uncounted - 1, DOUBLINGS)), LONGEST_APART)


def waiting(step: Step, now: datetime, retry_after: timedelta = timedelta()) -> Step:
    """Return a running step as it waits for its next attempt; the last one counts as no failure.

    The next one begins after `retry_after` at the earliest, whatever the pause is by itself.
    """
    uncounted = step.uncounted + 1
    until = max(now + retry_after, (step.started_at or now) + apart(uncounted))
    back = step.state is StepState.UNDOING
    return replace(
        step,
        state=StepState.UNDOING if back else StepState.NOT_STARTED,
        complete_by=None,
        not_before=until if until > now else None,
        uncounted=uncounted,
    )
