"""Turns at a steady rate, without a place where calls are counted: only when the next may begin is remembered."""

from collections.abc import Iterable
from datetime import datetime, timedelta

BURST = timedelta(seconds=0.5)
"""Turns of so short a time ago that nobody took may still be taken, since it takes time to ask for one."""


def free_from(next_at: datetime, written_at: datetime, now: datetime, spacing: timedelta) -> datetime:
    """Return when the next turn is free, of which somebody wrote that it was free at `next_at`.

    If by our clock that was written in the future, the two clocks differ, and only how long it was until then counts;
    then each of the two keeps the rate for itself, and they may make twice as many calls together.
    """
    return min(next_at, now + max(next_at - written_at, spacing))


def turns(
    free: datetime | None, now: datetime, spacing: timedelta, latest: Iterable[datetime]
) -> tuple[list[datetime | None], datetime]:
    """Return when each caller's turn begins, and when the next one is free.

    `free` is what was returned last time. A caller whose turn would begin after the latest time that it can use gets
    None, and takes none.
    """
    next_at = max(free, now - BURST) if free else now
    begins: list[datetime | None] = []
    for limit in latest:
        if next_at <= limit:
            begins.append(next_at)
            next_at += spacing
        else:
            begins.append(None)
    return begins, next_at
