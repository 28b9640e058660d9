"""A web application that stands in for a service, as a part of this process."""

from collections.abc import Callable
from typing import Protocol

from aiohttp import web

from functions_alone.ports import HOST

PATIENCE_SECONDS = 5.0
"""How long a call that has begun may take when the stand-in stops."""


class StandIn(Protocol):
    """What answers in place of a service, while the event loop runs in which it was started."""

    async def start(self) -> None:
        """Listen; raises OSError if the port is taken."""

    async def stop(self) -> None:
        """Refuse connections from now on; it can be started again."""


class Site:
    """A `StandIn` that speaks HTTP; each start makes the application again."""

    def __init__(self, port: int, application: Callable[[], web.Application]) -> None:
        self._port, self._application = port, application
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """See `StandIn`."""
        self._runner = web.AppRunner(
            self._application(), access_log=None, shutdown_timeout=PATIENCE_SECONDS
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, HOST, self._port).start()

    async def stop(self) -> None:
        """See `StandIn`; calls that have begun are answered first."""
        if self._runner:
            await self._runner.cleanup()
            self._runner = None
