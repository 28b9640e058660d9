"""Tells whether the app can work, and if not, which dependency is away."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from core.errors import UnavailableError

PATIENCE_SECONDS = 3.0

Check = Callable[[], Awaitable[object]]


@dataclass(frozen=True, kw_only=True)
class HealthService:
    """Asks every dependency, all at once."""

    checks: Mapping[str, Check]

    async def report(self) -> tuple[bool, Mapping[str, Any]]:
        """Return whether all is well, and the word on each dependency."""
        states = dict(zip(self.checks, await asyncio.gather(*map(_ask, self.checks.values())), strict=True))
        healthy = all(state == "available" for state in states.values())
        return healthy, {"status": "healthy" if healthy else "unhealthy", "dependencies": states}


async def _ask(check: Check) -> str:
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await check()
    except (UnavailableError, TimeoutError):
        return "away"
    return "available"
