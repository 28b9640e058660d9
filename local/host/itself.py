"""What a host tells of itself, and how it is killed from the fault panel. Azure has nothing like it."""

import os
import signal
from collections.abc import Collection

from aiohttp import web

PATH = "/local/host"
"""GET tells which host answers; DELETE kills that one: of several on one socket, whichever got the call."""


async def answer(request: web.BaseRequest) -> web.StreamResponse:
    """Answer whoever has the operators' key."""
    if request.method not in ("GET", "DELETE"):
        return web.Response(status=404)
    response = web.json_response({"host": os.getpid()})
    await response.prepare(request)
    await response.write_eof()
    if request.method == "DELETE":
        os.kill(
            os.getpid(), signal.SIGKILL
        )  # nothing is finished, and nothing is said: as when a machine fails
    return response


def is_from_elsewhere(request: web.BaseRequest, origins: Collection[str]) -> bool:
    """Tell whether another site's page asks (by its `Origin`), or one whose name was made to lead here (by `Host`).

    Pages of these `origins` may ask.
    """
    host = request.host.rsplit(":", 1)[0] if not request.host.endswith("]") else request.host
    origin = request.headers.get("Origin")
    known = (None, f"http://{request.host}", *origins)
    return host not in ("127.0.0.1", "localhost", "[::1]") or origin not in known
