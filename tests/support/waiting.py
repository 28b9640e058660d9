"""Waiting for what another process does; the failure says what was seen last."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

PATIENCE_SECONDS = 60.0
"""Long enough for any machine: no test is about it."""
PAUSE_SECONDS = 0.02

Seen = TypeVar("Seen")


def until(look: Callable[[], Seen], wanted: Callable[[Seen], object] = bool) -> Seen:
    """Look until what is seen is as wanted, and return it."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not wanted(seen := look()):
        assert time.monotonic() < end, f"waited in vain; seen last: {seen!r}"
        time.sleep(PAUSE_SECONDS)
    return seen


async def until_async(look: Callable[[], Awaitable[Seen]], wanted: Callable[[Seen], object] = bool) -> Seen:
    """Do the same where to look takes an `await`."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not wanted(seen := await look()):
        assert time.monotonic() < end, f"waited in vain; seen last: {seen!r}"
        await asyncio.sleep(PAUSE_SECONDS)
    return seen
