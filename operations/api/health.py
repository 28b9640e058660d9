"""Reports whether the app can work, and which dependency is unavailable or refuses the app."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from engine.domain.errors import AccessDeniedError, QueueRefusedError
from engine.http.models import View

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 2.0

Check = Callable[[], Awaitable[object]]
Word = Literal["available", "away", "refused"]


class Health(View):
    """Whether the app can work, and the state of each dependency."""

    status: Literal["healthy", "unhealthy"]
    dependencies: dict[str, Word]


class Unhealthy(Health):
    """The report of an app that cannot work."""

    http_status = 503


@dataclass(frozen=True, kw_only=True)
class HealthService:
    """Probes all dependencies at the same time. Concurrent reports share the running probes."""

    checks: Mapping[str, Check]
    _running: dict[str, asyncio.Task[object]] = field(default_factory=dict)

    async def report(self) -> Health | Unhealthy:
        """Report whether the app can work, and which dependency is unavailable."""
        found = await asyncio.gather(*map(self._ask, self.checks))
        words = dict(zip(self.checks, found, strict=True))
        if all(word == "available" for word in words.values()):
            return Health(status="healthy", dependencies=words)
        return Unhealthy(status="unhealthy", dependencies=words)

    async def _ask(self, name: str) -> Word:
        """Wait `PATIENCE_SECONDS` for a probe.

        If it takes longer, later reports wait for the same probe.
        """
        if name not in self._running:
            self._running[name] = asyncio.ensure_future(self.checks[name]())
        task = self._running[name]
        await asyncio.wait([task], timeout=PATIENCE_SECONDS)
        if not task.done():
            return "away"
        self._running.pop(name, None)
        if error := task.exception():
            log.warning("health.dependency_away", extra={"dependency": name, "why": str(error)})
            return "refused" if isinstance(error, AccessDeniedError | QueueRefusedError) else "away"
        return "available"
