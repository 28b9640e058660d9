"""Waiting for what another process does; the failure says what was seen last."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import pytest

PATIENCE_SECONDS = 300
"""How long a wait lasts before the test gives up. It is no claim about how fast anything is: no machine is so slow."""

Seen = TypeVar("Seen")


def until(look: Callable[[], Seen], wanted: Callable[[Seen], object] = bool) -> Seen:
    """Look until what is seen is as wanted, and return it."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not wanted(seen := look()):
        assert time.monotonic() < end, f"waited in vain; seen last: {seen!r}"
        time.sleep(0.02)
    return seen


async def eventually(check: Callable[[], Awaitable[Any]]) -> Any:
    """Ask until the answer is true, and return it; an assertion that fails in the check is asked again too.

    What costs much to ask is asked less often: what is being waited for needs the machine.
    """
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        began = time.monotonic()
        try:
            if answer := await check():
                return answer
            seen = repr(answer)
        except AssertionError as failed:
            seen = str(failed)
        now = time.monotonic()
        if now > end:
            pytest.fail(f"waited in vain: {_named(check)}; seen last: {seen}")
        await asyncio.sleep(max(0.25, 3 * (now - began)))


def _named(check: Callable[[], Awaitable[Any]]) -> str:
    inner = check.func if isinstance(check, partial) else check
    return getattr(inner, "__name__", repr(inner))
