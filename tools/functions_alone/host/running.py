"""The life of a host process, from its first log line to the signal that ends it."""

import asyncio
import os
import signal
import socket
from functools import partial
from pathlib import Path

from functions_alone.faults import LocalCode, StackFault
from functions_alone.host import worker
from functions_alone.host.connection import RefusedConnections
from functions_alone.host.errors import HostError
from functions_alone.host.fork_server import ForkServer
from functions_alone.host.host import Host
from functions_alone.host.logs import configure_logging
from functions_alone.host.vital import Vital

MOST_NAMES = 8


def run(
    app_dir: Path, only: frozenset[str] | None, port: int, listen_fd: int | None, log_level: str
) -> None:
    """Run the app until a signal ends it.

    Raises `HostError`, also when a part ends that the host cannot do without.
    """
    configure_logging(log_level)
    host = Host(app_dir=app_dir, environ=os.environ)
    fork_server = ForkServer.start(partial(worker.main, app_dir, only))
    try:
        asyncio.run(_serve(host, fork_server, port, listen_fd))
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    finally:
        fork_server.close()


async def _serve(host: Host, fork_server: ForkServer, port: int, listen_fd: int | None) -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().set_exception_handler(RefusedConnections())
    _stop_on_signal(stopping)
    async with Vital() as group:
        forks = group.create_task(fork_server.listen())
        await host.load(fork_server, group)
        listening = _listen(port, listen_fd)
        await host.start(listening, group)
        address, port = listening.getsockname()[:2]
        print(f"host is ready on http://{address}:{port} with {_named(host)}", flush=True)
        await stopping.wait()
        await host.stop()
        forks.cancel()


def _named(host: Host) -> str:
    """Return the names of the functions, or only their number if there are many."""
    names = [function.name for function in host.functions]
    return (
        f"functions: {', '.join(names)}" if len(names) <= MOST_NAMES else f"{len(names)} functions"
    )


def _listen(port: int, listen_fd: int | None) -> socket.socket:
    try:
        if listen_fd is not None:
            return socket.socket(fileno=listen_fd)
        return socket.create_server(("127.0.0.1", port), backlog=512)
    except OSError as error:
        where = f"file descriptor {listen_fd}" if listen_fd is not None else f"port {port}"
        reason = {"reason": str(error.strerror)}
        raise HostError(StackFault(LocalCode.CANNOT_LISTEN, where, reason)) from error


def _stop_on_signal(stopping: asyncio.Event) -> None:
    """Stop in order at the first signal, and at once at the second."""

    def stop(number: int) -> None:
        if stopping.is_set():
            os._exit(128 + number)
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop, int(number))
