"""Connections of HTTP callers: the time limit for a request's head, and whether a caller is still there."""

import asyncio
import logging
import select
import time
from typing import Any

from aiohttp import web

HEAD_SECONDS = 20.0
"""The time for the head of a request, from its first byte or from the start of the connection."""
SAY_AGAIN_SECONDS = 60.0
_GONE = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR

_log = logging.getLogger("functions_alone.host.http")


class Server(web.Server):
    """aiohttp's server with a time limit for the head of a request. By itself it would wait for ever."""

    def __call__(self) -> web.RequestHandler:
        """Return the handler of one connection."""
        return _Connection(self, loop=self._loop, **self._kwargs)


class _Connection(web.RequestHandler):
    __slots__ = ("_too_late",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._too_late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._limit()

    def data_received(self, data: bytes) -> None:
        heads = self._request_count
        if self._too_late is None and self._current_request is None:
            self._limit()
        super().data_received(data)
        if self._request_count > heads:
            self._unlimit()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._unlimit()
        super().connection_lost(exc)

    def _limit(self) -> None:
        self._too_late = self._loop.call_later(HEAD_SECONDS, self.force_close)

    def _unlimit(self) -> None:
        if self._too_late is not None:
            self._too_late.cancel()
            self._too_late = None


def is_gone(transport: asyncio.BaseTransport | None) -> bool:
    """Return whether a caller has closed its connection, even if that was not read yet."""
    if transport is None or transport.is_closing():
        return True
    poll = select.poll()
    poll.register(transport.get_extra_info("socket"), _GONE)
    return bool(poll.poll(0))


class RefusedConnections:
    """An event loop's handler that logs once, not for every try, that no connection can be accepted."""

    def __init__(self) -> None:
        self._last = 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Handle a report of asyncio."""
        if not context.get("message", "").startswith("socket.accept()"):
            loop.default_exception_handler(context)
            return
        now = time.monotonic()
        if not self._last or now > self._last + SAY_AGAIN_SECONDS:
            _log.error("no connection can be taken for now: %s", context.get("exception"))
        self._last = now
