"""Turns at a steady rate, without a place where calls are counted: only when the next may begin is remembered."""

from collections.abc import Iterable
from datetime import datetime, timedelta

BURST = timedelta(seconds=0.5)
"""Turns of so short a time ago that nobody took may still be taken, since it takes time to ask for one."""


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
