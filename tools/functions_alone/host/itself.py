"""Information about the hosts, and a call that kills one. Azure has nothing like it."""

import json
import os
import signal
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from aiohttp import web

HOSTS_FILE = "LOCAL_HOSTS_FILE"
"""The setting with the path of the file in which the runner lists its hosts."""

PATH = "/local/host"
"""GET names the host that answers, and lists all hosts of its runner.

DELETE kills the host with the process id `pid`. Without `pid` it kills the host that received the call, if several
share a socket.
"""


async def answer(request: web.BaseRequest) -> web.StreamResponse:
    """Answer a caller that has the functions' key."""
    hosts = hosts_of_runner()
    pids = {str(host["pid"]): int(host["pid"]) for host in hosts if host["runs"]}
    chosen = pids.get(request.query["pid"]) if "pid" in request.query else os.getpid()
    if request.method not in ("GET", "DELETE") or chosen is None:
        return web.Response(status=404)
    response = web.json_response({"host": os.getpid(), **({"hosts": hosts} if hosts else {})})
    await response.prepare(request)
    await response.write_eof()
    if request.method == "DELETE":
        with suppress(ProcessLookupError):  # it has ended by itself
            os.kill(chosen, signal.SIGKILL)  # nothing is finished or said: as when a machine fails
    return response


def hosts_of_runner() -> Sequence[Mapping[str, Any]]:
    """Return the hosts of the runner that started this host, or none if it was started without a runner."""
    file = os.environ.get(HOSTS_FILE)
    try:
        hosts: list[Mapping[str, Any]] = json.loads(Path(file).read_text()) if file else []
    except OSError:
        return []
    return hosts


def is_from_elsewhere(request: web.BaseRequest, origins: Collection[str]) -> bool:
    """Return whether a page of another site sends the request.

    It is recognized by its `Origin`, or by a `Host` name that was made to lead here. Pages of these `origins` may
    send requests.
    """
    host = request.host.rsplit(":", 1)[0] if not request.host.endswith("]") else request.host
    origin = request.headers.get("Origin")
    known = (None, f"http://{request.host}", *origins)
    return host not in ("127.0.0.1", "localhost", "[::1]") or origin not in known
