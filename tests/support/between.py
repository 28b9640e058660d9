"""What stands between the app and a part of the stack, and sees what goes by."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import unquote

import aiohttp
from aiohttp import web
from yarl import URL

from functions_alone.connections import storage_connection_string
from functions_alone.ports import HOST, Ports

KEPT = ("host", "content-length", "transfer-encoding", "connection", "content-encoding")
"""Headers that are not passed on."""


@dataclass
class Between:
    """Passes requests on; `refuses` may answer one itself."""

    target: str
    seen: list[tuple[float, str, bytes]] = field(default_factory=list)
    """When each request came, its path with its query, and its body."""
    refuses: Callable[[bytes], int | None] = lambda _: None
    """Returns the status of a refusal, by the body of a request, or None to pass it on."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.seen.append((time.monotonic(), unquote(request.path_qs), body))
        if status := self.refuses(body):
            return web.Response(status=status)
        headers = {
            name: value for name, value in request.headers.items() if name.lower() not in KEPT
        }
        async with self._http.request(
            request.method,
            URL(f"{self.target}{request.raw_path}", encoded=True),  # its signature is of this text
            data=body or None,
            headers=headers,
            skip_auto_headers=["Content-Type"],  # the signature is of this header too
            allow_redirects=False,
        ) as answer:
            kept = {
                name: value for name, value in answer.headers.items() if name.lower() not in KEPT
            }
            return web.Response(status=answer.status, body=await answer.read(), headers=kept)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """Listen on a free port, which is returned."""
        app = web.Application(client_max_size=8 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self.handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        async with aiohttp.ClientSession(auto_decompress=True) as self._http:
            site = web.TCPSite(runner, HOST, 0)
            await site.start()
            try:
                yield runner.addresses[0][1]
            finally:
                await runner.cleanup()


def storage_through(ports: Ports, table_port: int) -> str:
    """Return how to reach the stack's storage, with its tables over this port."""
    direct = f"TableEndpoint=http://{HOST}:{ports.table_port}/"
    return storage_connection_string(ports).replace(
        direct, f"TableEndpoint=http://{HOST}:{table_port}/"
    )
