"""Command line: `python -m functions_alone.host`."""

import gc
import sys
from pathlib import Path

import click

from functions_alone.host.errors import HostError
from functions_alone.proxies import bypass_proxies


@click.command(context_settings={"max_content_width": 100})
@click.option(
    "--app-dir", type=click.Path(path_type=Path), default=Path(), help="Folder of function_app.py."
)
@click.option(
    "--port", default=7071, show_default=True, help="HTTP port on 127.0.0.1; 0 takes a free one."
)
@click.option("--listen-fd", type=int, help="Inherited listening socket to use instead of --port.")
@click.option("--functions", help="Run only these functions: names separated by commas.")
@click.option(
    "--log-level", default="INFO", show_default=True, help="DEBUG also logs each success."
)
def main(
    app_dir: Path, port: int, listen_fd: int | None, functions: str | None, log_level: str
) -> None:
    """Run an Azure Functions app (Python v2 model) without Azure and its tools.

    App settings are environment variables. A trigger's connection X is a connection string in variable X or
    AzureWebJobsX; AzureWebJobs.<function>.Disabled=true switches a function off. LOCAL_FUNCTION_KEY is the key of
    routes that need one. LOCAL_HOST_JSON is the path of a host.json for apps that have none in their folder.
    LOCAL_QUEUE_LOCK_SECONDS (600) is how long a killed host's queue messages stay hidden,
    LOCAL_TIMER_LOCK_SECONDS how long its timers stay locked, if that is less than the listenerLockPeriod of host.json
    (60), LOCAL_SHUTDOWN_SECONDS (10) how long running functions may take to end. A process that ends by itself within
    LOCAL_SHORT_LIFE_SECONDS (5) is replaced after a pause. Ctrl-C or SIGTERM stops it.

    Functions run in a worker process, which is replaced when it ends or when a function takes longer than
    functionTimeout. LOCAL_FUNCTION_PROCESSES=each (default: one) gives each group its own, as Flex Consumption does:
    the HTTP functions together, every other function by itself.

    With LOCAL_DEBUG_PORT a debugger can attach to the worker process on that port of 127.0.0.1; it needs debugpy
    (pip install debugpy), and one host with one worker process. AzureFunctionsJobHost__functionTimeout=23:59:59 lets a
    function stand at a breakpoint for a day.
    """
    bypass_proxies()
    gc.disable()  # what is loaded stays: looking through it for garbage takes a fifth of the start
    from functions_alone.host.running import run  # noqa: PLC0415 - it loads nearly everything

    gc.freeze()
    gc.enable()
    only = (
        frozenset(name.strip() for name in functions.split(",") if name.strip())
        if functions
        else None
    )
    try:
        run(app_dir.resolve(), only, port, listen_fd, log_level)
    except HostError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
