"""The pause before the next attempt, after attempts that counted as no failure (SCH-16).

A counted failure is repeated until the threshold at most. An uncounted one has no such end: an
agent could not call, no agent took the request, or the service does the work later. So the time
between the starts of two attempts grows.
"""

from datetime import datetime, timedelta

SHORTEST, LONGEST = timedelta(seconds=0.25), timedelta(minutes=5)
"""The least time between the starts of two attempts, after one and after many of them."""

DOUBLINGS = 11
"""After so many doublings the longest time is reached; a larger power would be a huge number."""


def interval_after(uncounted: int) -> timedelta:
    """Return the least time between two starts, after this number of uncounted attempts."""
    return min(SHORTEST * (1 << min(uncounted - 1, DOUBLINGS)), LONGEST)


def next_start(
    started_at: datetime, now: datetime, uncounted: int, retry_after: timedelta = timedelta()
) -> datetime | None:
    """Return when the next attempt may start at the earliest; None if it may start now.

    `uncounted` includes the attempt that has just ended; `retry_after` is what its reply asked for.
    """
    at = max(now + retry_after, started_at + interval_after(uncounted))
    return at if at > now else None
