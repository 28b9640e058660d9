"""The pause before the next attempt at a step.

After a counted failure, the pause is a random part of a time that grows (SUP-3).

Some attempts count as no failure: the agent could not call, no agent took the request, or the
service finishes the work later. No threshold ends such attempts, so the time between the starts of
two of them grows (SCH-16).
"""

from datetime import datetime, timedelta
from zlib import crc32

SHORTEST, LONGEST = timedelta(seconds=0.25), timedelta(minutes=5)
"""The shortest and the longest interval between the starts of two uncounted attempts."""

# More doublings would compute a huge number first.
DOUBLINGS = 11
"""The number of doublings after which the longest interval is reached."""


def retry_pause(
    failures: int, *, timeout: timedelta, longest: timedelta, request: str
) -> timedelta:
    """Return the pause after this number of counted failures (SUP-3).

    There is no pause after the first failure. Later, the pause is a part (from 0 to 1) of a time
    that begins with `timeout` and doubles with each further failure, up to `longest`. A checksum
    of the id of the request is the part, so different requests get different pauses.
    """
    most = longest_retry_pause(failures, timeout=timeout, longest=longest)
    # Full jitter: requests that failed together come apart. One of them may end the agent's process
    # each time.
    return most * (crc32(request.encode()) / 2**32)


def longest_retry_pause(failures: int, *, timeout: timedelta, longest: timedelta) -> timedelta:
    """Return the upper limit of `retry_pause` (SUP-3)."""
    if failures < 2:
        return timedelta()
    return min(timeout * (1 << min(failures - 2, DOUBLINGS)), longest)


def interval_after(uncounted: int) -> timedelta:
    """Return the minimum interval between two starts after this number of uncounted attempts."""
    return min(SHORTEST * (1 << min(uncounted - 1, DOUBLINGS)), LONGEST)


def next_start(
    started_at: datetime, now: datetime, uncounted: int, retry_after: timedelta = timedelta()
) -> datetime | None:
    """Return the earliest start of the next attempt, or None if it may start now.

    `uncounted` includes the attempt that has just ended. `retry_after` is the pause that its reply
    requests.
    """
    at = max(now + retry_after, started_at + interval_after(uncounted))
    return at if at > now else None
