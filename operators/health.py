"""Tells whether the app can work, and if not, which dependency is away, or refuses the app."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from core.errors import NoRightError, QueueRefusedError

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 2.0

Check = Callable[[], Awaitable[object]]


@dataclass(frozen=True, kw_only=True)
class HealthService:
    """Asks every dependency, all at once. A slow answer is waited for in the background, by all who ask."""

    checks: Mapping[str, Check]
    _asked: dict[str, asyncio.Task[object]] = field(default_factory=dict)

    async def report(self) -> tuple[bool, Mapping[str, Any]]:
        """Return whether all is well, and the word on each dependency."""
        states = dict(zip(self.checks, await asyncio.gather(*map(self._ask, self.checks)), strict=True))
        healthy = all(state == "available" for state in states.values())
        return healthy, {"status": "healthy" if healthy else "unhealthy", "dependencies": states}

    async def _ask(self, name: str) -> str:
        """Wait a little for the answer; if it takes longer, the next report goes on waiting for the same one."""
        if name not in self._asked:
            self._asked[name] = asyncio.ensure_future(self.checks[name]())
        task = self._asked[name]
        await asyncio.wait([task], timeout=PATIENCE_SECONDS)
        if not task.done():
            return "away"
        self._asked.pop(name, None)
        if error := task.exception():
            log.warning("health.dependency_away", extra={"dependency": name, "why": str(error)})
            return "refused" if isinstance(error, NoRightError | QueueRefusedError) else "away"
        return "available"
