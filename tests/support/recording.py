"""Writes down which calls a process makes to which of Azure's services, inside the clients' own pipelines.

As a program it is the embedded host, whose calls it writes into the folder CALLS_FOLDER.
"""

import json
import os
import re
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from azure.core.pipeline.transport import AioHttpTransport
from azure.servicebus.aio import ServiceBusClient

SUFFIX = ".calls"
PARTS = re.compile(r"\r\n(POST|PUT|DELETE) (\S+) HTTP/1\.1\r\n")
"""The operations of an entity group transaction."""
TABLE = re.compile(r"/(\w+)(?:\(|$)")


class Call(NamedTuple):
    """What was done to which table, queue, container or topic."""

    service: str
    resource: str
    what: str


def install(folder: Path) -> None:
    """Write every different call of this process into a file of the folder, once."""
    seen: set[Call] = set()
    path = folder / f"{os.getpid()}{SUFFIX}"
    endpoints = _endpoints()

    def note(call: Call) -> None:
        if call not in seen:
            seen.add(call)
            with path.open("a") as file:
                file.write(json.dumps(call) + "\n")

    def http(request: Any, **_: Any) -> None:
        for prefix, service in endpoints.items():
            if request.url.startswith(prefix):
                for call in READERS[service](request, request.url.removeprefix(prefix)):
                    note(call)

    def bus(what: str) -> Any:
        """Of a queue; its dead-letter queue is a part of it."""
        return lambda *args, **options: note(
            Call("bus", (args[0] if args else options["queue_name"]).partition("/")[0], what)
        )

    _before(AioHttpTransport, "send", http)
    _before(ServiceBusClient, "get_queue_sender", bus("send"))
    _before(ServiceBusClient, "get_queue_receiver", bus("receive"))


def calls_in(folder: Path) -> set[Call]:
    """Return what all processes have written down."""
    return {
        Call(*json.loads(line))
        for path in folder.glob(f"*{SUFFIX}")
        for line in path.read_text().splitlines()
    }


def _endpoints() -> dict[str, str]:
    storage = dict(part.split("=", 1) for part in os.environ["StateStorage"].split(";") if part)  # noqa: SIM112
    return {
        storage["TableEndpoint"]: "table",
        storage["QueueEndpoint"]: "queue",
        storage["BlobEndpoint"]: "blob",
        os.environ["EVENT_GRID_ENDPOINT"]: "topic",
    }


def _table(request: Any, path: str) -> list[Call]:
    if not path.endswith("$batch"):
        return [Call("table", TABLE.findall(urlsplit(path).path)[0], request.method)]
    body = request.content.decode()
    return [
        Call("table", TABLE.findall(unquote(url))[-1], method)
        for method, url in PARTS.findall(body)
    ]


def _queue(request: Any, path: str) -> list[Call]:
    url = urlsplit(path)
    queue, _, messages = url.path.strip("/").partition("/")
    option = next((name for name in ("peekonly", "comp") if name in parse_qs(url.query)), "")
    return [
        Call(
            "queue",
            queue,
            " ".join(filter(None, [request.method, messages.partition("/")[0], option])),
        )
    ]


def _blob(request: Any, path: str) -> list[Call]:
    url = urlsplit(path)
    container, _, blob = url.path.strip("/").partition("/")
    return [Call("blob", container, f"{request.method} {'blob' if blob else 'container'}")]


def _topic(request: Any, path: str) -> list[Call]:
    del path
    return [Call("topic", "", request.method)]


READERS = {"table": _table, "queue": _queue, "blob": _blob, "topic": _topic}


def _before(owner: type, method: str, note: Any) -> None:
    original = getattr(owner, method)

    @wraps(original)
    def watched(self: Any, *args: Any, **options: Any) -> Any:
        note(*args, **options)
        return original(self, *args, **options)

    setattr(owner, method, watched)


if __name__ == "__main__":
    from functions_alone.host.__main__ import main

    install(Path(os.environ["CALLS_FOLDER"]))
    main()
