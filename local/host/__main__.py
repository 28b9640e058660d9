"""Command line: `python -m local.host`."""

import asyncio
import os
import signal
import socket
import sys
from functools import partial
from pathlib import Path

import click

from local.host import worker
from local.host.errors import HostError
from local.host.fork_server import ForkServer
from local.host.host import Host
from local.host.logs import configure_logging


@click.command(context_settings={"max_content_width": 100})
@click.option("--app-dir", type=click.Path(path_type=Path), default=Path(), help="Folder of function_app.py.")
@click.option("--port", default=7071, show_default=True, help="HTTP port on 127.0.0.1; 0 takes a free one.")
@click.option("--listen-fd", type=int, help="Inherited listening socket to use instead of --port.")
@click.option("--functions", help="Run only these: names separated by commas.")
@click.option("--log-level", default="INFO", show_default=True, help="DEBUG also logs each success.")
def main(app_dir: Path, port: int, listen_fd: int | None, functions: str | None, log_level: str) -> None:
    """Run an Azure Functions app (Python v2 model) without Azure and its tools.

    App settings are environment variables. A trigger's connection X is a connection string in variable X or
    AzureWebJobsX; AzureWebJobs.<function>.Disabled=true switches a function off. OPERATOR_KEY is the key of
    routes that need one. LOCAL_QUEUE_LOCK_SECONDS (600) is how long a killed host's queue messages stay hidden,
    LOCAL_TIMER_LOCK_SECONDS (15) how long its timers stay locked, LOCAL_SHUTDOWN_SECONDS (10) how long running
    functions may take to end. Ctrl-C or SIGTERM stops it.

    Functions run in a worker process, which is replaced when it ends or when a function takes longer than
    functionTimeout. LOCAL_FUNCTION_PROCESSES=each (default: one) gives each group its own, as Flex Consumption does:
    the HTTP functions together, every other function by itself.
    """
    configure_logging(log_level)
    only = frozenset(name.strip() for name in functions.split(",") if name.strip()) if functions else None
    try:
        app_dir = app_dir.resolve()
        host = Host(app_dir=app_dir, environ=os.environ)
        fork_server = ForkServer.start(partial(worker.main, app_dir, only))
        try:
            asyncio.run(_serve(host, fork_server, port, listen_fd))
        finally:
            fork_server.close()
    except HostError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)


async def _serve(host: Host, fork_server: ForkServer, port: int, listen_fd: int | None) -> None:
    stopping = asyncio.Event()
    _stop_on_signal(stopping)
    await host.load(fork_server)
    listening = _listen(port, listen_fd)
    await host.start(listening)
    names = ", ".join(each.name for each in host.functions)
    address, port = listening.getsockname()[:2]
    print(f"host is ready on http://{address}:{port} with functions: {names}", flush=True)
    await stopping.wait()
    await host.stop()


def _listen(port: int, listen_fd: int | None) -> socket.socket:
    try:
        if listen_fd is not None:
            return socket.socket(fileno=listen_fd)
        return socket.create_server(("127.0.0.1", port), backlog=512)
    except OSError as error:
        where = f"file descriptor {listen_fd}" if listen_fd is not None else f"port {port}"
        raise HostError(f"cannot listen on {where}: {error.strerror}") from error


def _stop_on_signal(stopping: asyncio.Event) -> None:
    """Stop in order at the first signal, at once at the second."""

    def stop(number: int) -> None:
        if stopping.is_set():
            os._exit(128 + number)
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop, int(number))


if __name__ == "__main__":
    main()
