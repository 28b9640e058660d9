"""The pause before the next attempt at a step.

After a counted failure it is a random part of a time that grows (SUP-3). After an attempt that
counted as no failure there is no threshold that ends it: an agent could not call, no agent took the
request, or the service does the work later. So the time between the starts of two attempts grows
(SCH-16).
"""

from datetime import datetime, timedelta
from zlib import crc32

SHORTEST, LONGEST = timedelta(seconds=0.25), timedelta(minutes=5)
"""The least time between the starts of two attempts, after one and after many of them."""

DOUBLINGS = 11
"""After so many doublings the longest time is reached; a larger power would be a huge number."""


def retry_pause(
    failures: int, *, timeout: timedelta, longest: timedelta, request: str
) -> timedelta:
    """Return the pause after this number of counted failures: none after the first (SUP-3).

    It is a part of `timeout`, which doubles with each further failure, up to `longest`. The id of
    the request chooses the part, between none and all of it (full jitter). So requests that fail
    together come apart: one of them may end the agent's process each time.
    """
    most = longest_retry_pause(failures, timeout=timeout, longest=longest)
    return most * (crc32(request.encode()) / 2**32)


def longest_retry_pause(failures: int, *, timeout: timedelta, longest: timedelta) -> timedelta:
    """Return the longest pause after this number of counted failures (SUP-3)."""
    if failures < 2:
        return timedelta()
    return min(timeout * (1 << min(failures - 2, DOUBLINGS)), longest)


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
