"""A web application that stands in for a service, inside this process."""

from collections.abc import Callable
from typing import Protocol

from aiohttp import web

from functions_alone.ports import HOST

PATIENCE_SECONDS = 5.0
"""How long a running call may take when the stand-in stops."""


class StandIn(Protocol):
    """A stand-in for a service, which answers while the event loop runs in which it was started."""

    async def start(self) -> None:
        """Listen. Raises OSError if the port is taken."""

    async def stop(self) -> None:
        """Refuse connections from now on. The stand-in can be started again."""


class Site:
    """A `StandIn` that speaks HTTP. Each start makes the application again."""

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
        """See `StandIn`. Calls that have begun are answered first."""
        if self._runner:
            await self._runner.cleanup()
            self._runner = None
